package servers

// Limit sets the most bytes of a tool's result for the backend and for the client.
func (s *Set) Limit(result, shown int) { s.maxResult, s.maxShown = result, shown }
