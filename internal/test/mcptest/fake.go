package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
)

// Fake is an HTTP server that sends what a test wants.
type Fake struct {
	mu      sync.Mutex
	replies map[string]string // the members of a response, by method
	heard   map[string]int    // how often a method was asked for
	session int               // the number of the only session that it knows
}

// NewFake returns a server with the tool "x" that never asks for roots, until the test ends, and
// its configuration.
func NewFake(t testing.TB) (*Fake, mcpclient.Config) {
	t.Helper()
	h := &Fake{heard: map[string]int{}, replies: map[string]string{
		"ping":       `"result":{}`,
		"tools/list": `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`,
		"tools/call": `"result":{"content":[{"type":"text","text":"called"}]}`,
	}}
	h.Offer(`"tools":{}`)
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return h, mcpclient.Config{Name: "h", Transport: mcp.HTTP, URL: s.URL,
		Policy: mcp.Policy{SettleWithoutRoots: time.Millisecond}}
}

// Respond sets the members of the response to a method.
func (h *Fake) Respond(method, members string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replies[method] = members
}

// Offer makes the server declare these capabilities, such as "tools":{}.
func (h *Fake) Offer(capabilities string) {
	h.Respond("initialize", `"result":{"protocolVersion":"2025-11-25","capabilities":{`+capabilities+
		`},"serverInfo":{"name":"h","version":"1"}}`)
}

// Count returns how often a method was requested.
func (h *Fake) Count(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard[method]
}

// ForgetSession makes the server answer 404 until the client initializes again.
func (h *Fake) ForgetSession() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session++
}

// knows reports whether the server knows the session of a request.
func (h *Fake) knows(r *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := r.Header.Get("Mcp-Session-Id")
	return id == "" || id == strconv.Itoa(h.session)
}

// ServeHTTP implements [http.Handler].
func (h *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	case !h.knows(r):
		http.NotFound(w, r)
		return
	case json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.mu.Lock()
	members, ok := h.replies[m.Method]
	h.heard[m.Method]++
	if m.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", strconv.Itoa(h.session))
	}
	h.mu.Unlock()
	if !ok {
		members = `"error":{"code":-32601,"message":"unknown"}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, members)
}
