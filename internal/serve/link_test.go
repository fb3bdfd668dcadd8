package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
)

func TestURLsOfServers(t *testing.T) {
	for given, want := range map[string]string{
		"wss://host:8765":        "wss://host:8765/acp",
		"https://host/":          "wss://host/acp",
		"http://127.0.0.1:1":     "ws://127.0.0.1:1/acp",
		"ws://[::1]:1/elsewhere": "ws://[::1]:1/elsewhere",
	} {
		got, err := ParseURL(given)
		require.NoError(t, err, given)
		require.Equal(t, want, got)
	}
	for given, want := range map[string]string{
		"host":           "is not the URL of a server",
		"localhost:8765": "is not the URL of a server",
		"ftp://host":     "must begin with ws:// or wss://",
		"ws://host":      "would send your token unencrypted",
		"wss://a:b@host": "must not contain a password",
	} {
		_, err := ParseURL(given)
		require.ErrorContains(t, err, want, given)
	}
}

// The server answers what it has read before it ends the connection of an editor that has left.
func TestEditorThatLeavesGetsItsAnswers(t *testing.T) {
	h := start(t)
	e := connect(t, "ws://"+h.address, h.add("ana"))
	_, err := e.in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`))
	require.NoError(t, err)
	require.NoError(t, e.in.Close())
	line := e.line()
	require.Contains(t, line, `"result"`)
	require.NoError(t, e.end())
}

// accepting returns the URL of a server that closes a connection when use returns.
func accepting(t *testing.T, use func(websocket.Conn)) string {
	t.Helper()
	acceptor := websocket.NewAcceptor(websocket.Times{}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := acceptor.Accept(w, r, "ana", 1<<20); err == nil {
			use(conn)
			_ = conn.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// An editor that has left and reads nothing more does not keep the link from ending.
func TestEditorThatReadsNothingMore(t *testing.T) {
	t.Parallel()
	url, err := ParseURL(accepting(t, func(conn websocket.Conn) {
		_ = conn.Write(conn.Context(), []byte(`{"jsonrpc":"2.0","method":"x"}`))
		<-conn.Context().Done()
	}))
	require.NoError(t, err)
	link, err := Dial(t.Context(), url, "token", 100)
	require.NoError(t, err)
	output, out := io.Pipe()
	defer output.Close()
	require.NoError(t, link.Pass(t.Context(), strings.NewReader(""), out))
}

// A server that reads slowly gets all lines of an editor that has left.
func TestSlowServerGetsAllLines(t *testing.T) {
	const lines = 250
	var got atomic.Int64
	ended := make(chan struct{})
	e := connect(t, accepting(t, func(conn websocket.Conn) {
		defer close(ended)
		for {
			if _, err := conn.Read(); err != nil {
				return
			}
			got.Add(1)
			time.Sleep(25 * time.Millisecond)
		}
	}), "token")
	for range lines {
		e.send(`{"jsonrpc":"2.0","method":"_x","params":"` + strings.Repeat("x", 50<<10) + `"}`)
	}
	require.NoError(t, e.in.Close())
	require.NoError(t, e.end())
	<-ended
	require.EqualValues(t, lines, got.Load())
}

// Requests that nobody can answer any more are answered with the reason, others are not.
func TestOpenRequestsAreAnsweredWhenTheServerLeaves(t *testing.T) {
	e := connect(t, accepting(t, func(conn websocket.Conn) {
		for range 3 {
			_, _ = conn.Read()
		}
		_ = conn.Write(conn.Context(), []byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}"))
	}), "token")
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":"two","method":"b"}`,
		`{"jsonrpc":"2.0","method":"c"}`,
	} {
		e.send(line)
	}
	first := e.line()
	require.Equal(t, "{\"jsonrpc\":\"2.0\", \"id\":1,\"result\":{}}\n", first)
	second := e.line()
	require.Contains(t, second, `"id":"two"`)
	require.Contains(t, second, "the server closed the connection; start the agent again and load the session")
	require.ErrorContains(t, e.end(), "the server closed the connection")
}

func TestLineThatIsTooLongEndsTheLink(t *testing.T) {
	h := start(t)
	link, err := Dial(t.Context(), "ws://"+h.address+Path, h.add("ana"), 100)
	require.NoError(t, err)
	e := follow(t, link)
	_, _ = e.in.Write([]byte(strings.Repeat("a", 200) + "\n"))
	require.Error(t, e.end())
}

func TestServersWithAndWithoutTLS(t *testing.T) {
	with, without := httptest.NewTLSServer(nil), httptest.NewServer(nil)
	defer with.Close()
	defer without.Close()
	_, err := Dial(t.Context(), strings.Replace(with.URL, "https", "wss", 1), "token", 100)
	require.ErrorContains(t, err, "if the certificate is your own, have this system trust it")
	_, err = Dial(t.Context(), strings.Replace(with.URL, "https", "ws", 1), "token", 100)
	require.ErrorContains(t, err, "; use wss://")
	_, err = Dial(t.Context(), strings.Replace(without.URL, "http", "wss", 1), "token", 100)
	require.ErrorContains(t, err, "; if the server has no certificate, use ws://")
	_, err = Dial(t.Context(), "wss://nowhere.invalid", "token", 100)
	require.ErrorContains(t, err, "; check the name of the host, and that this machine is online")
}
