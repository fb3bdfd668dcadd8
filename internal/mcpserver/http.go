package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionTimeout is how long an HTTP session lasts without a request.
const sessionTimeout = time.Hour

// Handler serves clients over streamable HTTP. It rejects requests to a loopback address that name another host than localhost, and
// requests from web pages of another origin. Shut the HTTP server down before calling [Server.Close].
func (s *Server) Handler() http.Handler {
	sessions := s.sdkHandler(mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout})
	// The SDK serves modern clients only without sessions, but legacy clients are asked for roots within theirs.
	stateless := s.sdkHandler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modern {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
	return http.NewCrossOriginProtection().Handler(s.limitRequests(byEra))
}

func (s *Server) sdkHandler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = int64(s.options.MaxMessage)
	return mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s.forClient(&client{server: s, onlyDuringCalls: true}) }, &o)
}

// limitRequests rejects requests while too many are pending, and ends those whose body does not arrive in time. It does not count GET
// requests, which open event streams: the SDK allows one for each session.
func (s *Server) limitRequests(next http.Handler) http.Handler {
	slots := make(chan struct{}, s.limits.pending)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, tooManyRequests(s.limits.pending), http.StatusServiceUnavailable)
			return
		}
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(s.limits.bodyTimeout)) == nil {
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(w, r)
	})
}

// tooManyRequests returns the error message for a request beyond the limit.
func tooManyRequests(limit int) string {
	return fmt.Sprintf("too many unanswered requests (the limit is %d): wait for some", limit)
}

// timedBody is a request body with a read deadline, which it removes at its end: the server reads from the connection while it
// handles the request.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
