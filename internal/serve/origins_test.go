package serve

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

func TestOriginsOfWebPages(t *testing.T) {
	named, err := ParseOrigins([]string{"https://UI.example.org/", "http://ui.example.org:8080",
		"https://ui.example.org:444", "tauri://localhost", "http://[::1]:80"})
	require.NoError(t, err)
	for _, c := range []struct {
		host    string
		origins []string
		admits  bool
	}{
		{"agent.example.org", nil, true},
		{"agent.example.org", []string{"https://agent.example.org"}, true},
		{"AGENT.example.org:8765", []string{"http://agent.example.org:8765"}, true},
		{"agent.example.org:8765", []string{"http://agent.example.org"}, false},
		{"agent.example.org", []string{"https://ui.example.org"}, true},
		{"agent.example.org", []string{"https://ui.example.org:443"}, true},
		{"agent.example.org", []string{"https://ui.example.org:444"}, true},
		{"agent.example.org", []string{"http://ui.example.org"}, false},
		{"agent.example.org", []string{"http://ui.example.org:8080"}, true},
		{"agent.example.org", []string{"http://[::1]"}, true},
		{"agent.example.org", []string{"tauri://localhost"}, true},
		{"agent.example.org", []string{"https://ui.example.org.evil.example"}, false},
		{"agent.example.org", []string{"https://evil.example/ui.example.org"}, false},
		{"agent.example.org", []string{"https://ui.example.org@evil.example"}, false},
		{"agent.example.org", []string{"null"}, false},
		{"agent.example.org", []string{""}, false},
		{"agent.example.org", []string{"file://"}, false},
		{"", []string{"null"}, false},
		{"agent.example.org", []string{"https://ui.example.org", "https://evil.example"}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/acp", nil)
		r.Host = c.host
		r.Header["Origin"] = c.origins
		require.Equal(t, c.admits, named.Admit(r), "%s from %q", c.host, c.origins)
	}
	for _, invalid := range []string{"", "null", "*", "ui.example.org", "https://", "https://*.example.org",
		"https://ui.example.org/page", "https://ana@ui.example.org", "https://ui.example.org?a", "://x",
		"https://ui.example.org#a"} {
		_, err := ParseOrigins([]string{invalid})
		require.Error(t, err, invalid)
	}
}

// Clause N1.
func TestWebPagesConnectWithATokenAndAnAllowedOrigin(t *testing.T) {
	h := start(t, allow(t, "https://ui.example.org"))
	secret := h.add("ana")
	const mine, evil = "https://ui.example.org", "https://evil.example"
	for _, c := range []struct {
		origin, authorization string
		offers                []string
		status                int
		selects               string
	}{
		{mine, "", []string{"acp.v1", "bearer." + secret}, 101, "acp.v1"},
		{mine, "", []string{"bearer." + secret}, 101, "bearer." + secret},
		{mine, "", []string{"chat", "bearer." + secret}, 101, "bearer." + secret},
		{"", "", []string{"acp.v1", "bearer." + secret}, 101, "acp.v1"},
		{"http://" + h.address, "Bearer " + secret, nil, 101, ""},
		{mine, "Bearer " + secret, []string{"bearer.x"}, 101, "bearer.x"},
		{mine, "Basic " + secret, []string{"bearer." + secret}, 401, ""},
		{mine, "", []string{"acp.v1", "bearer.ana.x"}, 401, ""},
		{mine, "", []string{"acp.v1", "bearer."}, 401, ""},
		{mine, "", []string{"acp.v1", secret}, 401, ""},
		{mine, "", []string{"acp.v1"}, 401, ""},
		{evil, "", []string{"acp.v1", "bearer." + secret}, 403, ""},
		{evil, "Bearer " + secret, nil, 403, ""},
		{"null", "Bearer " + secret, nil, 403, ""},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Origin": c.origin, "Authorization": c.authorization} {
			if value != "" {
				header.Set(name, value)
			}
		}
		socket, response, err := websocket.Dial(t.Context(), "ws://"+h.address+Path,
			&websocket.DialOptions{HTTPHeader: header, Subprotocols: c.offers})
		require.Equal(t, c.status, response.StatusCode, "%v", c)
		if err == nil {
			require.Equal(t, c.selects, socket.Subprotocol(), "%v", c)
			_ = socket.CloseNow()
		}
	}
	require.Contains(t, h.log.String(), `"rejected a connection of a web page" from=127.0.0.1:`)
	require.Contains(t, h.log.String(), `origin=https://evil.example`)
	require.NotContains(t, h.log.String()+h.audit.String(), strings.TrimPrefix(secret, "ana."))
}

// A browser names the page's origin, sets no headers, and wants one of its subprotocols.
func TestBrowserConnects(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	npmtest.File(t, "testdata/node-browser", "@sparticuz/chromium/package.json")
	script := filepath.Join(filepath.Dir(npmtest.File(t, "testdata/node-browser", "")), "connect.mjs")
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer page.Close()
	h := start(t, allow(t, page.URL))
	other := strings.Replace(page.URL, "127.0.0.1", "localhost", 1)
	walk := exec.CommandContext(t.Context(), npmtest.Node(t), script, "ws://"+h.address+Path, h.add("ana"),
		page.URL, other)
	walk.Env = append(walk.Environ(), "HOME="+t.TempDir())
	out, err := walk.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), page.URL+`: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,`)
	require.Contains(t, string(out), other+": refused")
}

// allow lets pages of an origin connect.
func allow(t *testing.T, origin string) func(*Options) {
	origins, err := ParseOrigins([]string{origin})
	require.NoError(t, err)
	return func(o *Options) { o.Origins = origins }
}

// Clients that know only the other transport learn which one there is.
func TestWebSocketIsTheTransport(t *testing.T) {
	h := start(t)
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+h.add("ana"))
	w := httptest.NewRecorder()
	h.handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, http.MethodGet, w.Header().Get("Allow"))
	require.Contains(t, w.Body.String(), "connect with WebSocket")
}
