package mcpclient

import "slices"

// feature is what revision 2026-07-28 deprecates, with what takes its place.
type feature string

const (
	featureRoots feature = "this server asks for roots, which MCP deprecates since 2026-07-28 and may drop after 2027-07-28: " +
		"it can be given them in its arguments or environment instead, by templates such as ${roots}"
	featureLogging feature = "this server sends log messages by MCP, which deprecates that since 2026-07-28: its stderr is in the log anyway"
)

// warn says once for each server that it uses something deprecated (M7).
func (s *server) warn(f feature) {
	s.mu.Lock()
	known := slices.Contains(s.warnings, f)
	if !known {
		s.warnings = append(s.warnings, f)
	}
	s.mu.Unlock()
	if !known {
		s.log.Warn(string(f))
	}
}
