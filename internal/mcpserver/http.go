package mcpserver

import (
	"errors"
	"fmt"
	"io"
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
	return http.NewCrossOriginProtection().Handler(s.bounded(byEra))
}

// bounded refuses requests that are too many, and ends those whose body does not come. Of the streams that a GET opens
// the SDK has one for each session.
func (s *Server) bounded(next http.Handler) http.Handler {
	slots := make(chan struct{}, s.options.MaxPending)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, fmt.Sprintf("%d requests are not answered yet, which is the limit: wait for some", s.options.MaxPending), http.StatusServiceUnavailable)
			return
		}
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(s.options.BodyTimeout)) == nil {
			r.Body = &timely{ReadCloser: r.Body, control: control}
		}
		next.ServeHTTP(w, r)
	})
}

// timely is a body that has to come before a deadline, which ends with it: the connection is read on while the request is
// worked on.
type timely struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements [io.Reader].
func (t *timely) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = t.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (s *Server) handler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = int64(s.options.MaxMessage)
	return mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s.forClient(&client{server: s, ask: withinCalls}) }, &o)
}
