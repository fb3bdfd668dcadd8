package mcptest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Guarded is a server behind HTTP that wants a header with each request.
type Guarded struct {
	// URL is its address.
	URL string

	mu      sync.Mutex
	refused []string
}

// Guard serves a handler to requests with a header, until the test is over. Others are refused as unauthorized.
func Guard(t testing.TB, name, value string, behind http.Handler) *Guarded {
	t.Helper()
	g := &Guarded{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(name) == value {
			behind.ServeHTTP(w, r)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refused = append(g.refused, r.Method+" "+r.URL.String())
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.URL = server.URL
	return g
}

// Refused are the requests so far that came without the header, as method and address.
func (g *Guarded) Refused() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.refused...)
}
