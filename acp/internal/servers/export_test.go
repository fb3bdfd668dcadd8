package servers

// Limit sets the most bytes of a tool's result for the backend and for the client.
func (s *Set) Limit(result, shown int) { s.maxResult, s.maxShown = result, shown }

// Allow remembers that the user always allows s.
func (c *Consents) Allow(s FoundServer) error { return c.allow(s) }

// Allowed reports whether the user always allows s.
func (c *Consents) Allowed(s FoundServer) (bool, error) { return c.allowed(s) }
