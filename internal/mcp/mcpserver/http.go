package mcpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
)

// sessionTimeout is how long an HTTP session lasts without a request.
const sessionTimeout = time.Hour

// Handler serves clients over streamable HTTP. It rejects requests without the token if
// [Options.Token] is set, requests to a loopback address that name another host than localhost, and
// requests from web pages of another origin. Shut the HTTP server down before calling
// [Server.Close].
func (s *Server) Handler() http.Handler {
	sessions := s.sdkHandler(mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout})
	// The SDK serves modern clients only without sessions, but legacy clients are asked for roots
	// in a session.
	stateless := s.sdkHandler(
		mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mcproots.IsModern(r.Header.Get("Mcp-Protocol-Version")) {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
	return s.requireToken(http.NewCrossOriginProtection().Handler(byEra))
}

func (s *Server) sdkHandler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = int64(min(s.options.MaxMessage, mcp.DefaultMaxRequestBodyBytes))
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return s.newClient(s.httpSlots, true).sdk
	}, &o)
}

// requireToken rejects requests without the token, if there is one.
func (s *Server) requireToken(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		// hashes have the same length, and are compared in constant time
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") ||
			subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
			w.Header().Set("Connection", "close") // the body is not read
			http.Error(w, "a token is required: send the header Authorization: Bearer TOKEN with "+
				"the token that acp-agent mcp printed or was given", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
