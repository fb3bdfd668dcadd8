package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/internal/test/cable"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// installation is servers with the same tokens and sessions behind a proxy.
type installation struct {
	servers []*host
	cable   *cable.Cable // from clients to the proxy
	// to is the server to which the proxy sends requests.
	to atomic.Int32
	// users are those that the proxy could tell apart, in the order of their requests.
	mu    sync.Mutex
	users []string
}

// install starts n servers.
func install(t *testing.T, n int) *installation {
	t.Helper()
	store := sqlite.NewMemory()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var all installation
	dir := t.TempDir()
	for range n {
		h := start(t, func(o *Options) { o.Accounts, o.Store = NewAccounts(dir), store })
		h.dir = dir
		all.servers = append(all.servers, h)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		all.mu.Lock()
		all.users = append(all.users, r.In.URL.Query().Get("user"))
		all.mu.Unlock()
		r.SetURL(&url.URL{Scheme: "http", Host: all.servers[all.to.Load()].address})
	}})
	t.Cleanup(proxy.Close)
	all.cable = cable.Lay(t, "ws"+strings.TrimPrefix(proxy.URL, "http"))
	return &all
}

// A proxy can send all connections of a user to one server, whichever token they have. A token of
// somebody else's format may have anything before its last dot.
func TestProxyKnowsWhoConnects(t *testing.T) {
	all := install(t, 1)
	for _, token := range []string{all.servers[0].add("ana.b+c@example.org"), all.servers[0].add("bob"),
		all.servers[0].another("ana.b+c@example.org")} {
		require.Empty(t, connect(t, all.cable.URL, token).initialize().call("session/list", map[string]any{}).Error)
	}
	all.cable.Cut()
	for _, foreign := range []string{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJlIG9mIGFuYQ", "secret", ""} {
		_, err := Dial(t.Context(), all.cable.URL+Path, foreign, 1<<20)
		require.ErrorContains(t, err, "401")
	}
	require.Subset(t, all.users, []string{"ana.b+c@example.org", "bob", ""})
	require.NotContains(t, strings.Join(all.users, " "), "eyJ")
	require.Equal(t, []string{"ana.b+c@example.org", "bob", "ana.b+c@example.org"}, all.users[:3])
}

// A connection that comes to a server which does not have it goes on there.
func TestConnectionComesToAnotherServer(t *testing.T) {
	all := install(t, 3)
	dir := t.TempDir()
	e := connect(t, all.cable.URL, all.servers[0].add("ana", dir)).initialize()
	opened := e.open(dir).id(t)
	for _, to := range []int32{2, 1, 0} {
		all.to.Store(to)
		all.cable.Cut()
		said := e.say(opened, "/roots")
		require.Empty(t, said.Error, "%d: %s %s", to, all.servers[to].log, all.servers[to].audit)
		require.Contains(t, string(said.Result), "end_turn")
		require.Equal(t, 1, all.servers[to].sessions())
	}
}

// sessions returns how many sessions are open on a server.
func (h *host) sessions() int { return h.acp.Used().Sessions }

// An editor does not notice that a server ends: its sessions are open on another one.
func TestServerThatEndsHandsOver(t *testing.T) {
	all := install(t, 3)
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	e := connect(t, all.cable.URL, all.servers[0].add("ana", dir)).initialize()
	ids := make(map[string]bool)
	for _, cwd := range []string{a, b} {
		require.NoError(t, os.Mkdir(cwd, 0o700))
		ids[e.open(cwd).id(t)] = true
	}
	for server := range 2 {
		all.to.Store(int32(server + 1))
		all.servers[server].stop()
		for id := range ids {
			require.Contains(t, string(e.say(id, "/roots").Result), "end_turn")
		}
		require.Equal(t, 2, all.servers[server+1].sessions())
	}
	all.servers[2].add("bob")
	require.NoError(t, all.servers[2].options.Accounts.Revoke("ana"))
	require.ErrorContains(t, e.end(), "401")
}

// scripted is a server that answers requests as a test says.
func scripted(t *testing.T, answer func(connection int, message []byte) []byte) string {
	acceptor := websocket.NewAcceptor(websocket.Times{}, nil)
	connections := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := acceptor.Accept(w, r, "ana", 1<<20)
		if err != nil {
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
	require.JSONEq(t, `{"jsonrpc":"2.0","id":7,"method":"ask"}`, e.line())
	e.send(`{"jsonrpc":"2.0","id":2,"method":"turn"}`)
	require.Contains(t, e.line(), "send the message again")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"1:7","method":"ask"}`, e.line())
	e.send(`{"jsonrpc":"2.0","id":7,"result":"late"}`)
	e.send(`{"jsonrpc":"2.0","id":"1:7","result":"right"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"1:7"}}`, e.line())
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

// A request that a server has not read is served by the next one, and answered once.
func TestRequestThatWasNotRead(t *testing.T) {
	sent := make(chan struct{})
	url := scripted(t, func(connection int, message []byte) []byte {
		if strings.Contains(string(message), `"turn"`) {
			<-sent
			return nil
		}
		return strictjson.Set([]byte(`{"jsonrpc":"2.0","result":{}}`), "id", strictjson.Find(message, "id"))
	})
	e := connect(t, url, "ana.x").initialize()
	e.send(`{"jsonrpc":"2.0","id":2,"method":"turn"}`)
	e.send(`{"jsonrpc":"2.0","id":3,"method":"next"}`)
	time.Sleep(50 * time.Millisecond) // until it has arrived
	close(sent)
	require.Contains(t, e.line(), "send the message again")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, e.line())
}

// A server that accepts connections and ends them at once is not asked for ever.
func TestServerThatAlwaysEnds(t *testing.T) {
	url := scripted(t, func(connection int, message []byte) []byte {
		if connection == 1 && strings.Contains(string(message), `"initialize"`) {
			return []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		return nil
	})
	e := connect(t, url, "ana.x").initialize()
	e.send(`{"jsonrpc":"2.0","id":2,"method":"turn"}`)
	require.Error(t, e.end())
}

// Connections that ended long ago do not count.
func TestServerThatEndsOnceInAWhile(t *testing.T) {
	url := scripted(t, func(connection int, message []byte) []byte {
		if connection == 2 || connection == 1 && strings.Contains(string(message), `"turn"`) {
			return nil
		}
		return strictjson.Set([]byte(`{"jsonrpc":"2.0","result":{}}`), "id", strictjson.Find(message, "id"))
	})
	link, err := Dial(t.Context(), url, "ana.x", 1<<20)
	require.NoError(t, err)
	link.handedOver, link.inRow = time.Now().Add(-3*steady/2), maxUnsteady
	e := follow(t, link).initialize()
	e.send(`{"jsonrpc":"2.0","id":2,"method":"turn"}`)
	require.Contains(t, e.line(), "send the message again")
	e.send(`{"jsonrpc":"2.0","id":3,"method":"next"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, e.line())
}

// An editor that leaves while there is no server does not wait for one.
func TestEditorLeavesDuringHandOver(t *testing.T) {
	h := start(t)
	e := connect(t, "ws://"+h.address, h.add("ana")).initialize()
	h.stop()
	e.send(`{"jsonrpc":"2.0","id":2,"method":"session/list"}`)
	require.NoError(t, e.in.Close())
	require.NoError(t, e.end())
}
