package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// sessions returns how many sessions are open on a server.
func (h *host) sessions() int { return h.acp.Used().Sessions }

// An editor does not notice that a server ends: its sessions are open on another one.
func TestServerThatEndsHandsOver(t *testing.T) {
	store := sqlite.NewMemory()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	all := install(t, 3, func(o *Options) { o.Store = store })
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	e := connect(t, all.cable.URL, all.servers[0].add("ana", dir)).initialize()
	ids := make(map[string]bool)
	for _, cwd := range []string{a, b} {
		require.NoError(t, os.Mkdir(cwd, 0o700))
		var opened struct{ SessionID string }
		require.NoError(t, json.Unmarshal(e.open(cwd).Result, &opened))
		ids[opened.SessionID] = true
	}
	for server := range 2 {
		all.to.Store(int32(server + 1))
		all.servers[server].stop()
		for id := range ids {
			a := e.call("session/prompt", map[string]any{"sessionId": id,
				"prompt": []any{map[string]any{"type": "text", "text": "/roots"}}})
			require.Empty(t, a.Error)
			require.Contains(t, string(a.Result), "end_turn")
		}
		require.Equal(t, 2, all.servers[server+1].sessions())
	}
	all.servers[2].add("bob")
	require.NoError(t, all.servers[2].options.Tokens.Revoke("ana"))
	require.ErrorContains(t, e.end(), "401")
}

// scripted is a server that answers requests as a test says.
func scripted(t *testing.T, answer func(connection int, message []byte) []byte) string {
	acceptor := websocket.NewAcceptor(1<<20, websocket.Times{}, nil)
	connections := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := acceptor.Accept(w, r, "ana")
		if conn == nil || err != nil {
			return
		}
		defer conn.Close()
		connections++
		for {
			message, err := conn.Read()
			if err != nil {
				return
			}
			reply := answer(connections, message)
			if reply == nil {
				return
			}
			for line := range strings.SplitSeq(string(reply), "\n") {
				if conn.Write(r.Context(), []byte(line)) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// An answer to a question of the first server must not answer a question of the second one that has
// the same id.
func TestQuestionsOfEarlierServers(t *testing.T) {
	var got []string
	url := scripted(t, func(connection int, message []byte) []byte {
		got = append(got, string(message))
		switch {
		case strings.Contains(string(message), `"initialize"`) && connection == 1:
			return []byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"ask"}`)
		case strings.Contains(string(message), `"initialize"`):
			return []byte(`{"jsonrpc":"2.0","id":"acp-agent connect","result":{}}` + "\n" +
				`{"jsonrpc":"2.0","id":7,"method":"ask"}`)
		case strings.Contains(string(message), `"turn"`):
			return nil
		}
		return []byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`)
	})
	e := connect(t, url, "ana.x").initialize()
	line := func() string {
		text, err := e.lines.ReadString('\n')
		require.NoError(t, err)
		return text
	}
	send := func(text string) {
		_, err := io.WriteString(e.in, text+"\n")
		require.NoError(t, err)
	}
	require.JSONEq(t, `{"jsonrpc":"2.0","id":7,"method":"ask"}`, line())
	send(`{"jsonrpc":"2.0","id":2,"method":"turn"}`)
	require.Contains(t, line(), "send the message again")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"1:7","method":"ask"}`, line())
	send(`{"jsonrpc":"2.0","id":7,"result":"late"}`)
	send(`{"jsonrpc":"2.0","id":"1:7","result":"right"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"1:7"}}`, line())
	require.JSONEq(t, `{"jsonrpc":"2.0","id":7,"result":"right"}`, got[len(got)-1])
	require.NotContains(t, strings.Join(got, ""), "late")
}

// The session is resumed with the roots that it has got since it was opened, and a request that a
// server has not begun to serve is served by the next one.
func TestNextServerResumesAndServes(t *testing.T) {
	var resumed string
	own := func(result string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":"acp-agent connect","result":` + result + `}`)
	}
	url := scripted(t, func(connection int, message []byte) []byte {
		method := string(strictjson.Find(message, "method"))
		switch fmt.Sprint(connection, method) {
		case `1"initialize"`:
			return []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		case `1"session/new"`:
			return []byte(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`)
		case `1"session/prompt"`:
			return []byte(`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no","data":{"reason":"shutting_down"}}}`)
		case `2"initialize"`:
			return own("{}")
		case `2"session/list"`:
			if strictjson.Find(message, "params", "cursor") == nil {
				return own(`{"sessions":[{"sessionId":"other"}],"nextCursor":"c"}`)
			}
			return own(`{"sessions":[{"sessionId":"s","additionalDirectories":["/added"]}]}`)
		case `2"session/resume"`:
			resumed = string(strictjson.Find(message, "params"))
			return own("{}")
		case `2"session/prompt"`:
			return []byte(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
		}
		return nil
	})
	e := connect(t, url, "ana.x").initialize()
	require.Empty(t, e.open("/cwd").Error)
	require.Empty(t, e.call("session/prompt", map[string]any{"sessionId": "s"}).Error)
	require.JSONEq(t, `{"sessionId":"s","cwd":"/cwd","mcpServers":[],"additionalDirectories":["/added"]}`, resumed)
}

// A server that accepts connections and ends them at once is not asked for ever.
func TestServerThatAlwaysEnds(t *testing.T) {
	url := scripted(t, func(connection int, message []byte) []byte {
		if connection > 1 {
			return nil
		}
		if strings.Contains(string(message), `"initialize"`) {
			return []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		return nil
	})
	e := connect(t, url, "ana.x").initialize()
	_, err := io.WriteString(e.in, `{"jsonrpc":"2.0","id":2,"method":"turn"}`+"\n")
	require.NoError(t, err)
	require.Error(t, e.end())
}

// An editor that leaves while there is no server does not wait for one.
func TestEditorLeavesDuringHandOver(t *testing.T) {
	h := start(t)
	e := connect(t, "ws://"+h.address, h.add("ana")).initialize()
	h.stop()
	_, err := io.WriteString(e.in, `{"jsonrpc":"2.0","id":2,"method":"session/list"}`+"\n")
	require.NoError(t, err)
	require.NoError(t, e.in.Close())
	require.NoError(t, e.end())
}
