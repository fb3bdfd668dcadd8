package mcpserver

import (
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionTimeout is after how long without a request an HTTP session ends.
const sessionTimeout = time.Hour

// Handler serves clients over streamable HTTP. Requests for another host than localhost that come in on a loopback
// address, and those of a browser's page from another origin, are refused. Shut the HTTP server down before [Server.Close].
func (s *Server) Handler() http.Handler {
	sessions := s.handler(mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout})
	// The SDK serves the modern era only where it keeps no sessions, and the older one asks for roots within them.
	single := s.handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modern {
			single.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
	return http.NewCrossOriginProtection().Handler(byEra)
}

func (s *Server) handler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = int64(s.options.MaxMessage)
	return mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s.forClient(&client{server: s, ask: withinCalls}) }, &o)
}
