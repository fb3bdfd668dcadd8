package mcpserver

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"bufio"
	"context"
	"fmt"
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

	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/workspace/tools"
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

// overHTTPWith is overHTTP with another tool.
func overHTTPWith(t *testing.T, o Options, tool string,
	run func(context.Context) string) (*Server, *httptest.Server) {
	t.Helper()
	server, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	addTools(server, func(server *mcp.Server, _ *client) {
		server.AddTool(&mcp.Tool{Name: tool, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: run(ctx)}}},
					nil
			})
	})
	s := httptest.NewUnstartedServer(server.Handler())
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10) // a response that is not read blocks soon
		return ctx
	}
	s.Start()
	t.Cleanup(s.Close)
	return server, s
}

func connect(t *testing.T, url, revision string,
	roots ...string) (*mcp.Client, *mcp.ClientSession) {
	t.Helper()
	return connectBy(t, &http.Transport{DisableKeepAlives: true}, url, revision, roots...)
}

// connectBy is connect with a way for requests.
func connectBy(t *testing.T, way http.RoundTripper, url, revision string,
	roots ...string) (*mcp.Client, *mcp.ClientSession) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "client"},
		&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{
			RootsV2: &mcp.RootCapabilities{ListChanged: true}}})
	for _, dir := range roots {
		client.AddRoots(&mcp.Root{URI: dirURI(t, dir)})
	}
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: way}},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return client, session
}

func readFile(t *testing.T, s *mcp.ClientSession, path string) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file",
		Arguments: map[string]any{"path": path}})
	require.NoError(t, err)
	require.NotEmpty(t, r.Content)
	text, ok := r.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	return text.Text
}

// Clause M8.
func TestHTTPRoots(t *testing.T) {
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
			// the notice has a way of its own, which the call may overtake
			require.Eventually(t, func() bool {
				return strings.Contains(readFile(t, session, "f"), "in b")
			}, patience, 1)
			require.Contains(t, readFile(t, session, filepath.Join(a, "f")), "outside")
		})
	}
}

// Clause M8.
func TestHTTPClientsAreSeparate(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, Options{})
	_, one := connect(t, s.URL, "2025-11-25", a)
	_, two := connect(t, s.URL, "2025-11-25", b)
	require.Contains(t, readFile(t, one, "f"), "in a")
	require.Contains(t, readFile(t, two, "f"), "in b")
	require.Contains(t, readFile(t, one, filepath.Join(b, "f")), "outside")
}

// newRequest returns a request with a message.
func newRequest(ctx context.Context, t *testing.T, method, url, message string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(message))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

func TestHTTPHostAndOrigin(t *testing.T) {
	s := overHTTP(t, Options{})
	for name, change := range map[string]func(*http.Request){
		"host":   func(r *http.Request) { r.Host = "evil.example" },
		"origin": func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t.Context(), t, http.MethodPost, s.URL, initialize(withoutRoots))
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
	r := newRequest(ctx, t, http.MethodPost, url, message)
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

func TestHTTPUnknownSession(t *testing.T) {
	s := overHTTP(t, Options{})
	_, one, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	_, other, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	require.NotEqual(t, one, other)
	require.GreaterOrEqual(t, len(one), 26, "130 bits in letters of base32")
	for _, guess := range []string{"1", one[:len(one)-1], one + "x", strings.ToLower(one)} {
		status, _, _ := post(t.Context(), t, s.URL, guess, call(1, "list_roots", "{}"))
		require.Equal(t, http.StatusNotFound, status)
	}
}

// send sends a message on a connection of its own, with a body that is announced as longer by some
// bytes. The connection receives little that is not read.
func send(t *testing.T, s *httptest.Server, session, message string, missing int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(16<<10))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn,
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"Mcp-Session-Id: %s\r\nAccept: application/json, text/event-stream\r\n\r\n%s", len(
			message)+missing, session, message)
	require.NoError(t, err)
	return conn
}

func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func TestHTTPRequestSize(t *testing.T) {
	s := overHTTP(t, Options{})
	long := strings.Replace(initialize(withoutRoots), "{", "{"+strings.Repeat(" ", 4<<20), 1)
	got, _, body := post(t.Context(), t, s.URL, "", long[:4<<20])
	require.Equal(t, http.StatusBadRequest, got, body)
	got, _, body = post(t.Context(), t, s.URL, "", long)
	require.Equal(t, http.StatusRequestEntityTooLarge, got)
	require.Contains(t, body, "exceeds 4194304 bytes")
}

// Clients that do not read their responses do not keep others from being served.
func TestHTTPUnreadResponses(t *testing.T) {
	begun := make(chan bool, 3)
	_, s := overHTTPWith(t, Options{limits: limits{calls: 2}}, "long", func(context.Context) string {
		begun <- true
		return strings.Repeat("x", 8<<20)
	})
	t.Cleanup(s.CloseClientConnections)
	_, session, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	for id := range 2 {
		send(t, s, session, call(id+1, "long", "{}"), 0)
		<-begun
	}
	got, _, body := post(t.Context(), t, s.URL, session, call(3, "long", "{}"))
	require.Equal(t, http.StatusOK, got)
	require.Contains(t, body, "xxx")
}

func TestHTTPCallsAreLimited(t *testing.T) {
	begun, end := make(chan bool, 10), make(chan bool)
	_, s := overHTTPWith(t, Options{limits: limits{calls: 2}},
		"wait", func(context.Context) string {
			begun <- true
			<-end
			return "waited"
		})
	_, session, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	var running []net.Conn
	for id := range 3 {
		running = append(running, send(t, s, session, call(id+1, "wait", "{}"), 0))
	}
	<-begun
	<-begun
	require.Empty(t, begun)
	got, _, body := post(t.Context(), t, s.URL, session, initialized)
	require.Equal(t, http.StatusAccepted, got, "notifications and answers pass: %s", body)
	close(end)
	for _, conn := range running {
		require.Equal(t, http.StatusOK, status(t, conn))
	}
}

// The searches of one client delay neither its own changes nor those of another.
func TestHTTPSearchesDoNotStarveOthers(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	begun, end := make(chan bool, 100), make(chan bool)
	roots := rootSet(t, a)
	allow := func(context.Context, tools.Change) error { return nil }
	_, s := overHTTPWith(t, Options{Roots: roots, Permit: allow}, "search",
		func(context.Context) string {
			begun <- true
			<-end
			return "found"
		})
	_, busy, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	var running []net.Conn
	for id := range 12 {
		running = append(running, send(t, s, busy, call(id+1, "search", "{}"), 0))
	}
	for range 4 {
		<-begun
	}
	require.Empty(t, begun)
	_, other, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	for _, session := range []string{busy, other} {
		got, _, body := post(t.Context(), t, s.URL, session,
			call(90, "write_file", `{"path":"`+session+`","content":"x"}`))
		require.Equal(t, http.StatusOK, got, body)
		require.Contains(t, body, session)
	}
	close(end)
	for _, conn := range running {
		require.Equal(t, http.StatusOK, status(t, conn))
	}
}

// The answer to the question for roots arrives while the call that needs it takes the only place.
func TestHTTPAnswersAreNotLimited(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	s := overHTTP(t, Options{limits: limits{calls: 1}})
	_, session := connect(t, s.URL, "2025-11-25", a)
	require.Contains(t, readFile(t, session, "f"), "in a")
}

func TestHTTPToken(t *testing.T) {
	s := overHTTP(t, Options{Token: "secret"})
	for _, c := range []struct {
		authorization string
		want          int
	}{
		{"", http.StatusUnauthorized},
		{"Bearer", http.StatusUnauthorized},
		{"Bearer ", http.StatusUnauthorized},
		{"Bearer secre", http.StatusUnauthorized},
		{"Bearer secret2", http.StatusUnauthorized},
		{"Basic secret", http.StatusUnauthorized},
		{"secret", http.StatusUnauthorized},
		{"Bearer secret", http.StatusOK},
		{"bearer secret", http.StatusOK},
	} {
		t.Run(c.authorization, func(t *testing.T) {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				r := newRequest(t.Context(), t, method, s.URL, initialize(withoutRoots))
				if c.authorization != "" {
					r.Header.Set("Authorization", c.authorization)
				}
				response, err := http.DefaultTransport.RoundTrip(r)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				if c.want == http.StatusUnauthorized {
					require.Equal(t, c.want, response.StatusCode)
					require.Equal(t, `Bearer realm="acp-agent"`,
						response.Header.Get("WWW-Authenticate"))
				} else if method == http.MethodPost {
					require.Equal(t, c.want, response.StatusCode)
				}
			}
		})
	}
	t.Run("before the body", func(t *testing.T) {
		require.Equal(t, http.StatusUnauthorized, status(t, send(t, s, "", "{", 100)))
	})
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

// Clause M8.
func TestHTTPClientIsOnlyAskedDuringCalls(t *testing.T) {
	a, b := tree(t, map[string]string{"f": "in a"}), tree(t, map[string]string{"f": "in b"})
	s := overHTTP(t, Options{Timeout: patience})
	var stream unasked
	client, session := connectBy(t, &stream, s.URL, "2025-11-25", a)
	require.Contains(t, readFile(t, session, filepath.Join(a, "f")), "in a")
	client.AddRoots(&mcp.Root{URI: dirURI(t, b)})
	// the notice has a way of its own, which the call may overtake
	require.Eventually(t, func() bool {
		return strings.Contains(readFile(t, session, filepath.Join(b, "f")), "in b")
	}, patience, 1)
	require.NotContains(t, stream.String(), "roots/list\"")
}
