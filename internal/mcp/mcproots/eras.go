package mcproots

// What follows is the difference between the two eras of MCP as far as roots are concerned. A
// client, a relay and a server all go by it.
//
//	              legacy, up to 2025-11-25          modern, since 2026-07-28
//	declared in   initialize, with listChanged      each request, in _meta, without it
//	asked for     by a request, roots/list          in the result of a request that MayAsk allows
//	changes       are announced by a notification   are not announced: each call asks again
const (
	// modern is the first revision of the modern era.
	modern = "2026-07-28"
	// Legacy is the last revision of the legacy era.
	Legacy = "2025-11-25"

	// ListMethod is the request for the roots, in both eras.
	ListMethod = "roots/list"
	// ChangedMethod is the notification that the roots have changed, in the legacy era.
	ChangedMethod = "notifications/roots/list_changed"

	// MaxRounds is how often one call is repeated because the server asks for input.
	MaxRounds = 10
	// MaxInputRequests limits the inputs that one result may ask for.
	MaxInputRequests = 100
)

// IsModern reports whether a revision belongs to the modern era.
func IsModern(revision string) bool { return revision >= modern }

// MayAsk reports whether the result of a request may ask for the roots, in the modern era.
func MayAsk(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read":
		return true
	}
	return false
}
