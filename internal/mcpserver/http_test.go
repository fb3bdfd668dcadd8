package mcpserver_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
)

// overHTTP serves clients on a port of this machine.
func overHTTP(t *testing.T, o mcpserver.Options) *httptest.Server {
	t.Helper()
	server, err := mcpserver.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	s := httptest.NewServer(server.Handler())
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, url, revision string, roots ...string) (*mcp.Client, *mcp.ClientSession) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		RootsV2: &mcp.RootCapabilities{ListChanged: true},
	}})
	for _, dir := range roots {
		client.AddRoots(&mcp.Root{URI: dirURI(t, dir)})
	}
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return client, session
}

func readFile(t *testing.T, s *mcp.ClientSession, path string) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": path}})
	require.NoError(t, err)
	require.NotEmpty(t, r.Content)
	text, ok := r.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	return text.Text
}

func TestM8_OverHTTPTheClientIsAskedWithinTheCall(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			s := overHTTP(t, mcpserver.Options{})
			client, session := connect(t, s.URL, revision, a)
			require.Equal(t, revision, session.InitializeResult().ProtocolVersion)
			require.Contains(t, readFile(t, session, "f"), "in a")
			require.Contains(t, readFile(t, session, filepath.Join(b, "f")), "outside")
			client.RemoveRoots(dirURI(t, a))
			client.AddRoots(&mcp.Root{URI: dirURI(t, b)})
			require.Eventually(t, func() bool { // the notice has a way of its own, which the call may overtake
				return strings.Contains(readFile(t, session, "f"), "in b")
			}, patience, 1)
			require.Contains(t, readFile(t, session, filepath.Join(a, "f")), "outside")
		})
	}
}

func TestM8_HTTPClientsDoNotSeeEachOther(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, mcpserver.Options{})
	_, one := connect(t, s.URL, "2025-11-25", a)
	_, two := connect(t, s.URL, "2025-11-25", b)
	require.Contains(t, readFile(t, one, "f"), "in a")
	require.Contains(t, readFile(t, two, "f"), "in b")
	require.Contains(t, readFile(t, one, filepath.Join(b, "f")), "outside")
}

func TestHTTPRefusesOtherHostsAndOrigins(t *testing.T) {
	s := overHTTP(t, mcpserver.Options{})
	for name, change := range map[string]func(*http.Request){
		"host":   func(r *http.Request) { r.Host = "evil.example" },
		"origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(initialize(withoutRoots)))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			change(r)
			response, err := s.Client().Do(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusForbidden, response.StatusCode)
		})
	}
}
