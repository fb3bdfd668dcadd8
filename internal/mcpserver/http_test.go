package mcpserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/testutil/logtest"
)

// overHTTP starts an HTTP server on the loopback interface.
func overHTTP(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	server, err := Open(t.Context(), o)
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

func TestM8_HTTPRoots(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			s := overHTTP(t, Options{})
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

func TestM8_HTTPClientsAreSeparate(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, Options{})
	_, one := connect(t, s.URL, "2025-11-25", a)
	_, two := connect(t, s.URL, "2025-11-25", b)
	require.Contains(t, readFile(t, one, "f"), "in a")
	require.Contains(t, readFile(t, two, "f"), "in b")
	require.Contains(t, readFile(t, one, filepath.Join(b, "f")), "outside")
}

func TestHTTPHostAndOrigin(t *testing.T) {
	s := overHTTP(t, Options{})
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

// post posts a message and returns the status, the session id and the body.
func post(ctx context.Context, t *testing.T, url, session, message string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(message))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("Mcp-Session-Id"), string(body)
}

func TestHTTPSessionsAreLimited(t *testing.T) {
	s := overHTTP(t, Options{limits: limits{sessions: 3}})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var sessions []string
	for range 3 {
		status, session, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
		require.Equal(t, http.StatusOK, status, body)
		sessions = append(sessions, session)
	}
	_, _, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	require.Contains(t, body, "too many open sessions (the limit is 3)")
	_, _, body = post(t.Context(), t, s.URL, sessions[0], call(1, "list_roots", "{}"))
	require.Contains(t, body, "no roots capability", "the others go on")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.URL, nil)
	require.NoError(t, err)
	r.Header.Set("Mcp-Session-Id", sessions[0])
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Eventually(t, func() bool {
		_, _, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
		return strings.Contains(body, "protocolVersion")
	}, patience, time.Millisecond)
}

func TestHTTPUnknownSession(t *testing.T) {
	s := overHTTP(t, Options{})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	_, one, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	_, other, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	require.NotEqual(t, one, other)
	require.GreaterOrEqual(t, len(one), 26, "130 bits in letters of base32")
	for _, guess := range []string{"1", one[:len(one)-1], one + "x", strings.ToLower(one)} {
		status, _, _ := post(t.Context(), t, s.URL, guess, call(1, "list_roots", "{}"))
		require.Equal(t, http.StatusNotFound, status)
	}
}

func TestHTTPRequestsAreLimited(t *testing.T) {
	s := overHTTP(t, Options{limits: limits{pending: 2, bodyTimeout: 500 * time.Millisecond}})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for range 2 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"+
			"Expect: 100-continue\r\nAccept: application/json, text/event-stream\r\n\r\n")
		require.NoError(t, err)
		begun, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, begun, "100 Continue", "its body is waited for")
	}
	status, _, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "too many unanswered requests (the limit is 2)")
	require.Eventually(t, func() bool {
		status, _, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
		return status == http.StatusOK
	}, patience, 10*time.Millisecond)
}

// A call may take longer than the time that its body has to arrive.
func TestHTTPBodyTimeoutDoesNotEndCalls(t *testing.T) {
	const bodies = 50 * time.Millisecond
	a := tree(t, map[string]string{"f": "in a"})
	s := overHTTP(t, Options{limits: limits{bodyTimeout: bodies}})
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			<-time.After(4 * bodies)
			return next(ctx, method, r)
		}
	})
	client.AddRoots(&mcp.Root{URI: dirURI(t, a)})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	require.Contains(t, readFile(t, session, "f"), "in a")
}

// unasked records what the server sends outside of responses.
type unasked struct{ logtest.Text }

func (u *unasked) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodGet {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, &u.Text), response.Body}
	}
	return response, err
}

func TestM8_HTTPClientIsOnlyAskedDuringCalls(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, Options{Timeout: time.Second})
	client := mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
		RootsV2: &mcp.RootCapabilities{ListChanged: true},
	}})
	client.AddRoots(&mcp.Root{URI: dirURI(t, a)})
	var stream unasked
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: &stream}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	require.Contains(t, readFile(t, session, filepath.Join(a, "f")), "in a")
	client.AddRoots(&mcp.Root{URI: dirURI(t, b)})
	require.Eventually(t, func() bool { // the notice has a way of its own, which the call may overtake
		return strings.Contains(readFile(t, session, filepath.Join(b, "f")), "in b")
	}, patience, 1)
	require.NotContains(t, stream.String(), "roots/list\"")
}
