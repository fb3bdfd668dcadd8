package found

// Allow remembers that the user always allows s.
func (c *Consents) Allow(s Server) error { return c.allow(s) }

// Allowed reports whether the user always allows s.
func (c *Consents) Allowed(s Server) (bool, error) { return c.allowed(s) }

// Expand replaces the variables in the configuration.
func (s *Server) Expand(folder string) error { return s.expand(folder) }
