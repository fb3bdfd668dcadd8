package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	acpwebsocket "github.com/acp-agent/acp-agent/internal/serve/websocket"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// paced lets a user send so many requests, and then one in an hour.
func (h *host) paced(user string, burst int) {
	pace := h.pace(user)
	pace.SetLimit(rate.Every(time.Hour))
	pace.SetBurst(burst * requestUnits)
}

// requests returns how many requests a user may send at once.
func (h *host) requests(user string) float64 { return h.pace(user).Tokens() / requestUnits }

// Requests of a user who sends too many wait, over all connections, and those of others do not.
//
// Clause N6.
func TestRequestsArePaced(t *testing.T) {
	h := start(t)
	ana, bob := h.add("ana"), h.add("bob")
	h.paced("ana", 5)
	one := connect(t, "ws://"+h.address, ana).initialize()
	other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
	one.lives() // the fifth: each connection counts too
	answered := make(chan string, 2)
	for _, e := range []*editor{one, other} {
		e.send(rawrpc.Request(99, "session/list", map[string]any{}))
		go func() {
			line, _ := e.lines.ReadString('\n')
			answered <- line
		}()
	}
	connect(t, "ws://"+h.address, bob).initialize().lives()
	select {
	case line := <-answered:
		t.Fatal("answered although there were too many: ", line)
	default:
	}
	require.NoError(t, h.options.Accounts.Revoke("ana"))
	h.endRevoked()
	for range 2 {
		require.Contains(t, <-answered, "closed the connection")
	}
}

// Requests of the page count too, whatever they ask for.
func TestRequestsOfThePageArePaced(t *testing.T) {
	h := start(t, func(o *Options) { o.Page = true })
	h.add("ana")
	phone := h.pair("ana", acp.RoleWatch)
	before := h.requests("ana")
	h.paced("ana", int(before))
	for _, path := range []string{"/me", "/api/sessions", "/api/facets"} {
		require.Equal(t, 200, h.post(path, "http://"+h.address, "", phone).StatusCode, path)
	}
	require.Less(t, h.requests("ana"), before-2)
	before = h.requests("ana")
	h.paced("ana", 100)
	h.post("/api/changes?id=none", "http://"+h.address, "", phone)
	require.Less(t, h.requests("ana"), before-10, "it reads a whole history")
}

// A device that is removed while its request waits gets nothing.
func TestRequestsThatWaitEndWithTheDevice(t *testing.T) {
	h := start(t, withPage)
	h.add("ana")
	phone := h.pair("ana", acp.RoleWatch)
	h.paced("ana", 1)
	require.True(t, h.knows(phone))
	h.pace("ana").SetLimit(requestUnits / 3.0) // the next one waits for three seconds
	done := make(chan bool, 1)
	go func() { done <- h.knows(phone) }()
	require.Eventually(t, func() bool { return h.requests("ana") < -0.1 }, time.Minute, time.Millisecond)
	require.NoError(t, h.options.Accounts.Revoke("ana"))
	require.False(t, <-done)
}

// A device that may not prompt sends nothing large, which would keep what the user sends waiting.
func TestRestrictedDevicesSendNothingLarge(t *testing.T) {
	h := start(t, withPage)
	h.add("ana")
	for role, takes := range map[acp.Role]bool{acp.RoleWatch: false, acp.RoleAnswer: false, acp.RoleFull: true} {
		socket, _ := h.browser(h.pair("ana", role), "http://"+h.address)
		err := socket.Write(t.Context(), websocket.MessageText,
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}`+
				strings.Repeat(" ", 100<<10)+"}"))
		if err == nil { // otherwise the connection has ended before all was written
			_, _, err = socket.Read(t.Context())
		}
		require.Equal(t, takes, err == nil, role)
	}
}

// A user who sends large messages leaves room for others, and the largest message fits in any case.
func TestRoomForMessages(t *testing.T) {
	const unit = 4 << 20
	for _, test := range []struct{ memory, maxLine, perUser, total int }{
		{memory: 16 * unit, maxLine: unit, perUser: 4 * unit, total: 16 * unit},
		{memory: 16 * unit, maxLine: 4 * unit, perUser: 8 * unit, total: 16 * unit},
		{memory: unit, maxLine: unit, perUser: 2 * unit, total: 2 * unit},
	} {
		b := messageBudget(test.memory, test.maxLine)
		require.True(t, b.Of("ana").Reserve(test.perUser))
		require.False(t, b.Of("ana").Reserve(unit))
		for n := test.total - test.perUser; n > 0; n -= unit {
			require.True(t, b.Of(fmt.Sprint("user", n)).Reserve(unit), test)
		}
		require.False(t, b.Of("bob").Reserve(unit), test)
	}
}

// Answers count little, whether or not they answer anything. What is no message counts as a request,
// and a large request as several.
func TestWhatMessagesCount(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":{}}`
	for message, want := range map[string]int{
		answer:                                1,
		`{"jsonrpc":"2.0","id":7,"error":{}}`: 1,
		answer[:len(answer)-3] + `"` + strings.Repeat("a", 64<<10) + `"}`: 1 + requestUnits,
		`{`:                                 requestUnits,
		`7`:                                 requestUnits,
		`{"jsonrpc":"2.0","id":7}`:          requestUnits,
		`{"method":"x","result":{}}`:        requestUnits,
		`{"method":7,"result":{}}`:          requestUnits,
		`{"method":"session\/load","id":1}`: requestUnits + historyUnits,
	} {
		require.Equal(t, want, units([]byte(message)), message)
	}
	h := start(t)
	secret := h.add("ana")
	h.paced("ana", 100)
	ana := connect(t, "ws://"+h.address, secret).initialize()
	before := h.requests("ana")
	for range 200 {
		ana.send(answer)
	}
	ana.lives()
	require.InDelta(t, before-200/requestUnits-1, h.requests("ana"), 0.5)
	before = h.requests("ana")
	require.NotEmpty(t, ana.call("session/prompt", map[string]any{"sessionId": strings.Repeat("a", 5*64<<10)}).Error)
	require.Less(t, h.requests("ana"), before-5)
}

// What a client sends right before it leaves is read.
func TestLastMessagesAreRead(t *testing.T) {
	read := make(chan string, 1)
	url := accepting(t, func(conn acpwebsocket.Conn) {
		<-conn.Context().Done()
		message, err := (&paced{Conn: conn, pace: newPace()}).Read()
		read <- fmt.Sprint(string(message), err)
	})
	socket, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http"), nil)
	require.NoError(t, err)
	const last = `{"jsonrpc":"2.0","method":"session/cancel"}`
	require.NoError(t, socket.Write(t.Context(), websocket.MessageText, []byte(last)))
	_ = socket.Close(websocket.StatusNormalClosure, "")
	require.Equal(t, last+"<nil>", <-read)
}

// say sends a prompt that the agent answers.
func (e *editor) say(session, text string) answer {
	e.t.Helper()
	return e.call("session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	})
}

// id returns the id of a session that was opened.
func (a answer) id(t *testing.T) (id string) {
	t.Helper()
	require.Empty(t, a.Error)
	var result struct{ SessionID string }
	require.NoError(t, json.Unmarshal(a.Result, &result))
	return result.SessionID
}

// A user who stores too much can only read and delete. Others are not concerned.
//
// Clause N6.
func TestStoredBytesAreLimited(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.StoredBytes = 100 << 10 })
	ana := connect(t, "ws://"+h.address, h.add("ana", dir)).initialize()
	bob := connect(t, "ws://"+h.address, h.add("bob", dir)).initialize()
	first, long := ana.open(dir).id(t), strings.Repeat("word ", 12<<10)
	require.Empty(t, ana.say(first, long).Error)
	other := connect(t, "ws://"+h.address, h.another("ana")).initialize()
	fork := map[string]any{"sessionId": first, "cwd": dir, "mcpServers": []any{}}
	for _, refused := range []answer{ana.say(first, long), other.say(other.open(dir).id(t), long),
		ana.call("session/fork", fork)} {
		require.Contains(t, refused.Error.Message, "all of the 100 KiB that the server allows you")
		require.JSONEq(t, `{"reason":"quota_exceeded"}`, string(refused.Error.Data))
	}
	require.Empty(t, bob.say(bob.open(dir).id(t), long).Error)
	require.Empty(t, ana.say(first, "/ls").Error, "there is room for this one")

	require.Empty(t, ana.call("session/delete", map[string]any{"sessionId": first}).Error)
}

// A session counts although nothing was said in it, and an account may have a limit of its own.
//
// Clause N6.
func TestUnusedSessionsCount(t *testing.T) {
	dir := t.TempDir()
	h := start(t, func(o *Options) { o.StoredBytes = 1 << 30 })
	secret := h.add("ana", dir)
	account, err := h.options.Accounts.Account("ana")
	require.NoError(t, err)
	account.Limits.StoredBytes = 5 * sessionstore.SessionBytes
	require.NoError(t, h.options.Accounts.Change(account))
	ana := connect(t, "ws://"+h.address, secret).initialize()
	opened := 0
	for ; opened < 10; opened++ {
		if a := ana.open(dir); a.Error.Message != "" {
			require.Contains(t, a.Error.Message, "that the server allows you")
			break
		}
	}
	require.Positive(t, opened)
	require.LessOrEqual(t, opened, 5)
}
