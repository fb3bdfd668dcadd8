package mcpclient_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/internal/testutil/mcptest"
)

// remoteServer returns a server that requires a header.
func remoteServer(t testing.TB, handler http.Handler) *mcptest.Guarded {
	t.Helper()
	return mcptest.Guard(t, "Authorization", "Bearer hunter2-secret", handler)
}

func remote(name string, kind mcpclient.Transport, url string) mcpclient.Config {
	return mcpclient.Config{Name: name, Transport: kind, URL: url,
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: "Bearer hunter2-secret"}}}
}

// sdkServer returns servers of the MCP SDK. initialized counts the legacy sessions.
func sdkServer(revision string, initialized *atomic.Int64) func(*http.Request) *mcp.Server {
	return func(*http.Request) *mcp.Server {
		s := mcptest.New(mcptest.Options{Revision: revision, Initialized: func() { initialized.Add(1) }})
		addTools(s)
		return s.Server
	}
}

func TestM4_M3_HTTPServers(t *testing.T) {
	a, b := folder(t), folder(t)
	for name, c := range map[string]struct {
		kind     mcpclient.Transport
		revision string
		handler  func(func(*http.Request) *mcp.Server) http.Handler
	}{
		"http": {mcpclient.HTTP, "2025-11-25", func(s func(*http.Request) *mcp.Server) http.Handler { return mcp.NewStreamableHTTPHandler(s, nil) }},
		"http, modern": {mcpclient.HTTP, "2026-07-28", func(s func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(s, &mcp.StreamableHTTPOptions{Stateless: true})
		}},
		"sse": {mcpclient.SSE, "2025-11-25", func(s func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(s, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			var initialized atomic.Int64
			server := remote("r", c.kind, remoteServer(t, c.handler(sdkServer(c.revision, &initialized))).URL+"/mcp")
			f := newFixture(t, mcpclient.Options{})
			f.change(open(t, a, b), server)
			require.Equal(t, uris(t, a, b), f.call("r.roots", "{}"))
			require.Equal(t, c.revision, f.Servers()[0].Revision)
			f.change(open(t, a, b, folder(t)), server)
			f.call("r.roots", "{}")
			before := initialized.Load()
			f.change(open(t, a), server)
			require.Equal(t, uris(t, a), f.call("r.roots", "{}"))
			if c.revision == "2025-11-25" {
				require.EqualValues(t, 1, before, "a new root: it went on")
				require.EqualValues(t, 2, initialized.Load(), "it reconnects because of the lost root")
			}
			require.NotContains(t, f.logs.String(), "hunter2")
		})
	}
}

func TestM4_HTTPServerRefuses(t *testing.T) {
	var initialized atomic.Int64
	s := remoteServer(t, mcp.NewStreamableHTTPHandler(sdkServer("2025-11-25", &initialized), nil))
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 1}))
	c := remote("r", mcpclient.HTTP, s.URL+"/mcp?key=secret-in-query")
	c.Headers[0].Value = "Bearer wrong-secret"
	f.change(open(t, folder(t)), c)
	_, err := f.list(t.Context())
	require.NoError(t, err)
	status := f.state(backend.ServerFailed)
	require.ErrorContains(t, status.Err, "Unauthorized")
	require.NotContains(t, status.Err.Error()+f.logs.String(), "secret-in-query")
	require.NotContains(t, status.Err.Error()+f.logs.String(), "wrong-secret")
}

func TestM4_URLsStayOutOfErrorsAndLogs(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no account for "+strings.Split(r.URL.Path, "/")[2]+" at http://"+r.Host+"/login/tangerine", http.StatusForbidden)
	})
	server := httptest.NewServer(refuse)
	defer server.Close()
	for _, kind := range []mcpclient.Transport{mcpclient.HTTP, mcpclient.SSE} {
		for _, base := range []string{server.URL, "http://127.0.0.1:1"} {
			f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 1}))
			f.change(open(t, folder(t)), mcpclient.Config{Name: "r", Transport: kind, URL: base + "/s/tangerine-1/mcp?tangerine-2#tangerine-3"})
			_, err := f.list(t.Context())
			require.NoError(t, err)
			require.NotContains(t, f.state(backend.ServerFailed).Err.Error(), "tangerine")
			require.NotContains(t, f.logs.String(), "tangerine")
		}
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
	f := newFixture(t, mcpclient.Options{}.With(mcpclient.Limits{MaxRestarts: 1}))
	f.change(open(t, folder(t)), remote("r", mcpclient.HTTP, s.URL))
	_, err := f.list(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, f.state(backend.ServerFailed).Err, "leads to another server")
	require.False(t, leaked.Load())
}
