package mcpserver_test

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcpserver"
)

// A request with the id of another is refused, and neither keeps its place among those that may wait.
func TestHostileIDsThatAreInUse(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, mcpserver.Options{MaxPending: 3, EndGrace: patience})
	p.begin(withRoots)
	question := p.question()
	for range 5 {
		p.write(call(1, "read_file", `{"path":"f"}`))
	}
	for range 4 {
		m := p.read()
		require.NotNil(t, m.Error, m.line)
		require.Equal(t, -32600, m.Error.Code)
		require.Nil(t, m.ID, "it is no answer to the first")
		require.Contains(t, m.Error.Message, "the id 1 is in use")
	}
	p.write(call(2, "list_roots", "{}"))
	p.answer(question, a)
	for range 2 {
		require.Nil(t, p.read().Error)
	}
	p.write(call(1, "read_file", `{"path":"f"}`))
	require.Contains(t, p.answerTo(1).text(), "in a")
	require.NoError(t, p.in.Close())
	select {
	case err := <-p.ended:
		require.NoError(t, err)
	case <-time.After(patience / 2):
		t.Fatal("it waits for an answer that was given")
	}
}

// A legacy client may name its revision in each message, which modern ones must.
func TestM7_ALegacyClientThatNamesItsRevision(t *testing.T) {
	a := tree(t, map[string]string{"f": "in a"})
	p := start(t, mcpserver.Options{Timeout: time.Second})
	p.begin(withRoots)
	p.answer(p.question(), a)
	p.write(strings.Replace(call(1, "read_file", `{"path":"f"}`), `"params":{`,
		`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"},`, 1))
	require.Contains(t, p.answerTo(1).text(), "in a")
}

// post posts a message, and returns the status, the session's id and the body.
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

func TestHostileSessionsOverHTTPAreBounded(t *testing.T) {
	s := overHTTP(t, mcpserver.Options{MaxSessions: 3})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var sessions []string
	for range 3 {
		status, session, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
		require.Equal(t, http.StatusOK, status, body)
		sessions = append(sessions, session)
	}
	_, _, body := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
	require.Contains(t, body, "3 sessions are open, which is the limit")
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

func TestHostileGuessedSessionsAreUnknown(t *testing.T) {
	s := overHTTP(t, mcpserver.Options{})
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

// The folder of a prompt cannot pass for another by what is in its name.
func TestA30_TheLabelOfAPromptStaysOnItsLine(t *testing.T) {
	a := tree(t, map[string]string{"x\ny\u202e/.claude/commands/go.md": "Do it."})
	p := start(t, mcpserver.Options{})
	p.begin(withRoots)
	p.answer(p.question(), a+"/x\ny\u202e")
	p.write(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"go"}}`)
	m := p.answerTo(1)
	messages, ok := m.Result["messages"].([]any)
	require.True(t, ok, m.line)
	content, _ := messages[0].(map[string]any)["content"].(map[string]any)
	require.Contains(t, fmt.Sprint(content["text"]), `/x\ny\u202e" says for /go:`)
}

func TestHostileRequestsOverHTTPAreBounded(t *testing.T) {
	s := overHTTP(t, mcpserver.Options{MaxPending: 2, BodyTimeout: 500 * time.Millisecond})
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
	require.Contains(t, body, "2 requests are not answered yet")
	require.Eventually(t, func() bool {
		status, _, _ := post(t.Context(), t, s.URL, "", initialize(withoutRoots))
		return status == http.StatusOK
	}, patience, 10*time.Millisecond)
}

// A request may take longer than its body.
func TestACallOverHTTPOutlastsTheTimeOfItsBody(t *testing.T) {
	const bodies = 50 * time.Millisecond
	a := tree(t, map[string]string{"f": "in a"})
	s := overHTTP(t, mcpserver.Options{BodyTimeout: bodies})
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

// An answer with another id than was asked with is no answer, or that of another request.
func TestHostileIDsThatCannotBeKept(t *testing.T) {
	p := start(t, mcpserver.Options{})
	p.begin(withoutRoots)
	for _, id := range []string{"9007199254740993", "1.5", "1e400", "18446744073709551615"} {
		p.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		m := p.read()
		require.NotNil(t, m.Error, m.line)
		require.Equal(t, -32600, m.Error.Code)
		require.Nil(t, m.ID)
	}
	for _, id := range []string{"9007199254740991", "-9007199254740991", "0", `"1.5"`} {
		p.write(`{"jsonrpc":"2.0", "method":"ping", "id": ` + id + ` }`)
		require.Contains(t, p.read().line, `"id":`+id+`,"result"`)
	}
}
