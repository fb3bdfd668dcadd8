package found

import "github.com/acp-agent/acp-agent/internal/permission/consent"

// Consent returns what is remembered if the user always allows s.
func Consent(s Server) consent.Consent { return s.consent() }

// Expand replaces the variables in the configuration.
func (s *Server) Expand(folder string) error { return s.expand(folder) }
