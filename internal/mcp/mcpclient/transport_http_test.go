package mcpclient_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
)

// remoteServer returns a server that requires a header.
func remoteServer(t testing.TB, handler http.Handler) *mcptest.Guarded {
	t.Helper()
	return mcptest.Guard(t, "Authorization", "Bearer hunter2-secret", handler)
}

// toolServers is mcptest.ToolServers for servers whose sessions and calls end with the test: a
// client whose connection broke cannot end its session, servers of the SDK keep one for ever, and
// they do not cancel a call whose cancellation overtook it.
func toolServers(
	t testing.TB, revision string, initialized *atomic.Int64,
) func(*http.Request) *mcp.Server {
	next := mcptest.ToolServers(revision, initialized)
	var mu sync.Mutex
	var servers []*mcp.Server
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range servers {
			for session := range s.Sessions() {
				_ = session.Close()
			}
		}
	})
	return func(q *http.Request) *mcp.Server {
		s := next(q)
		s.AddReceivingMiddleware(func(handle mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(t.Context(), cancel)()
				return handle(ctx, method, r)
			}
		})
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, s)
		return s
	}
}

func remote(name string, kind acpmcp.Transport, url string) mcpclient.Config {
	return mcpclient.Config{Name: name, Transport: kind, URL: url,
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: "Bearer hunter2-secret"}}}
}

// Clauses M4, M3.
func TestHTTPServers(t *testing.T) {
	a, b := folder(t), folder(t)
	for _, revision := range eras {
		t.Run(revision, func(t *testing.T) {
			var initialized atomic.Int64
			handler := mcp.NewStreamableHTTPHandler(toolServers(t, revision, &initialized),
				&mcp.StreamableHTTPOptions{Stateless: revision == eras[1]})
			server := remote("r", acpmcp.HTTP, remoteServer(t, handler).URL+"/mcp")
			f := newFixture(t, mcpclient.Options{})
			f.change(roottest.Open(t, a, b), server)
			require.Equal(t, uris(t, a, b), f.call("r.roots", "{}"))
			require.Equal(t, revision, f.Servers()[0].Revision)
			f.change(roottest.Open(t, a, b, folder(t)), server)
			f.call("r.roots", "{}")
			before := initialized.Load()
			f.change(roottest.Open(t, a), server)
			require.Equal(t, uris(t, a), f.call("r.roots", "{}"))
			if revision == eras[0] {
				require.EqualValues(t, 1, before, "a new root: it went on")
				require.EqualValues(t, 2, initialized.Load(), "it reconnects because of the lost root")
			}
			require.NotContains(t, f.logs.String(), "hunter2")
		})
	}
}

// Clause M4.
func TestEventStreamServer(t *testing.T) {
	f := serving(t, oneTry, remote("old", acpmcp.SSE, "http://127.0.0.1:1/sse"))
	require.EqualError(t, f.failed().Err, "MCP server old: acp-agent does not connect to MCP "+
		"servers of the type sse: use the type http, for which most of them have another address")
}

// Clause M4.
func TestHTTPServerRefuses(t *testing.T) {
	var initialized atomic.Int64
	s := remoteServer(t, mcp.NewStreamableHTTPHandler(toolServers(t, "2025-11-25", &initialized), nil))
	f := newFixture(t, oneTry)
	c := remote("r", acpmcp.HTTP, s.URL+"/mcp?key=secret-in-query")
	c.Headers[0].Value = "Bearer wrong-secret"
	f.change(roottest.Open(t, folder(t)), c)
	status := f.failed()
	require.EqualError(t, status.Err, "MCP server r: "+s.URL+`/mcp?[secret] answered 401 Unauthorized: "no"; `+
		"it does not accept the configured Authorization header, which may have expired")
	require.Zero(t, status.Restarts)
	require.NotContains(t, status.Err.Error()+f.logs.String(), "secret-in-query")
	require.NotContains(t, status.Err.Error()+f.logs.String(), "wrong-secret")
}

// Clause M4.
func TestURLsStayOutOfErrorsAndLogs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := strings.Split(r.URL.Path, "/")
		code, _ := strconv.Atoi(part[1])
		http.Error(w, "{"+strings.Repeat("x", 189)+part[2]+" has no account at http://"+r.Host+"/login/tangerine-4", code) // the log cuts it in part[2]
	}))
	defer server.Close()
	for _, base := range []string{server.URL + "/403", server.URL + "/200", "http://127.0.0.1:1/s"} {
		f := serving(t, oneTry, mcpclient.Config{Name: "r", Transport: acpmcp.HTTP, URL: base + "/tangerine-1/mcp?tangerine-2#tangerine-3"})
		require.NotContains(t, f.failed().Err.Error(), "tangerine")
		require.NotContains(t, f.logs.String(), "tangerine")
	}
}

func TestHeadersStayWithTheOrigin(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
	}))
	defer other.Close()
	s := remoteServer(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	f := serving(t, oneTry, remote("r", acpmcp.HTTP, s.URL))
	require.ErrorContains(t, f.failed().Err, "leads to another server")
	require.False(t, leaked.Load())
}

// Clause M4.
func TestHTTPStatus(t *testing.T) {
	var now http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now(w, r) }))
	defer server.Close()
	const check = "; check the URL and the headers of this server in the configuration of your editor"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"403":   {answer(403, "text/plain", "\n  no seat left  \nmore"), `403 Forbidden: "no seat left"` + check},
		"404":   {answer(404, "text/html", "<html>\n<title>Not here</title>"), `404 Not Found: "<html>"` + check},
		"500":   {answer(500, "text/plain", "panic in hunter2-secret"), `500 Internal Server Error: "panic in [secret]"`},
		"503":   {answer(503, "text/plain", ""), "503 Service Unavailable"},
		"HTML":  {answer(200, "text/html; charset=utf-8", "<!doctype html>\nSign in"), `200 OK: "<!doctype html>"` + check},
		"error": {answer(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the licence has ended"}}`), "the licence has ended"},
		"401": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://elsewhere.invalid/meta"`)
			http.Error(w, "token missing", http.StatusUnauthorized)
		}, `401 Unauthorized: "token missing"; it needs an OAuth access token: get one, and add the header Authorization: Bearer TOKEN`},
		"401 without metadata": {answer(401, "text/plain", ""), "401 Unauthorized; add the header that it needs, such as Authorization, to this server"},
	} {
		t.Run(name, func(t *testing.T) {
			now = c.answer
			f := serving(t, oneTry, mcpclient.Config{Name: "r", Transport: acpmcp.HTTP, URL: server.URL + "/mcp",
				Headers: []mcpclient.Pair{{Name: "X-Key", Value: "hunter2-secret"}}})
			require.ErrorContains(t, f.failed().Err, c.says)
			require.NotContains(t, f.logs.String(), "hunter2")
		})
	}
}
