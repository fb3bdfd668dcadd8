package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// remember gives a session a turn that said texts, each as a message of its own.
func remember(t *testing.T, store sessionstore.Store, id string, texts ...string) {
	t.Helper()
	session, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	l, err := store.Activate(t.Context(), session.ID, sessionstore.Activation{Keys: session.Keys})
	require.NoError(t, err)
	require.NoError(t, store.BeginTurn(t.Context(), l, sessionstore.Turn{Title: "long"}))
	for part := range slices.Chunk(texts, 1000) {
		var segment []sessionstore.Update
		for _, text := range part {
			segment = append(segment, apart(text))
		}
		require.NoError(t, store.Append(t.Context(), l, segment))
	}
	require.NoError(t, store.EndTurn(t.Context(), l, "end_turn"))
}

// apart is a message of its own, which is not joined with its neighbours.
func apart(text string) sessionstore.Update {
	return sessionstore.Update(`{"update":{"sessionUpdate":"agent_message_chunk","messageId":` + encode(text) + `,"content":` + encode(map[string]string{"type": "text", "text": text}) + `}}`)
}

// numbers are those below n.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

func TestS9_AClientThatStopsInALoadHoldsUpNobody(t *testing.T) {
	const (
		updates  = 30_000
		sessions = 50
		size     = 256 << 10 // of what a session's turn says
		logBound = 8 << 20   // twice what the log may keep when it is emptied
	)
	dir := t.TempDir()
	one, two := sqlite.New(sqlite.Options{Dir: dir}), sqlite.New(sqlite.Options{Dir: dir})
	t.Cleanup(func() {
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	})
	slow := connect(t, acp.Options{Store: one}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 64 << 10}}))
	same, other := connect(t, acp.Options{Store: one}), connect(t, acp.Options{Store: two})
	for _, c := range []*client{slow, same, other} {
		c.initialize()
	}
	a := folder(t)
	id := slow.open(a)
	remember(t, one, id, numbers(updates)...)

	load, line := slow.request("session/load", rootsParams(id, a))
	before := len(slow.messages())
	slow.send(line)
	slow.await(before, said("0"))
	goOn := slow.stall()
	text := strings.Repeat("x", size)
	for i := range sessions {
		c := []*client{same, other}[i%2]
		session := c.open(a)
		require.Equal(t, []string{"here"}, c.texts(session, "say here"))
		remember(t, two, session, text)
		log, err := os.Stat(filepath.Join(dir, "sessions.db-wal"))
		require.NoError(t, err)
		require.Less(t, log.Size(), int64(logBound), "after %d sessions", i+1)
	}
	require.Less(t, len(slow.messages()), updates, "the client stopped in the middle")

	goOn()
	require.Nil(t, slow.response(load).Error)
	_, answered := slow.await(before, isResponse(load))
	require.Equal(t, numbers(updates), texts(slow.messages()[before:answered], id))
}

func TestW11_CancelsAreProcessedWhileTheClientDoesNotRead(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	c.initialize()
	id, waiting := c.open(folder(t)), c.open(folder(t))
	flood, line := c.request("session/prompt", promptParams(id, "count 100000"))
	other, otherLine := c.request("session/prompt", promptParams(waiting, "wait"))
	c.send(otherLine)
	c.await(0, said("waiting"))
	c.send(line)
	c.await(0, said("0"))
	goOn := c.stall()
	for _, session := range []string{id, waiting} {
		c.send(notification("session/cancel", `{"sessionId":"`+session+`","_meta":{"of":"`+session+`"}}`))
		require.Eventually(t, func() bool {
			return strings.Contains(strings.Join(r.noted(), "\n"), `cancel {"_meta":{"of":"`+session+`"}}`)
		}, patience, time.Millisecond)
	}
	goOn()
	require.Equal(t, "cancelled", c.response(flood).stopReason(t))
	require.Equal(t, "cancelled", c.response(other).stopReason(t))
	require.Less(t, len(texts(c.messages(), id)), 100000, "the turn was blocked when it was cancelled")
}

func TestW6_CancelRequestTakesAWaitingLoadOutOfTheLane(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	first, firstLine := c.request("session/resume", rootsParams(id, a))
	second, secondLine := c.request("session/load", rootsParams(id, a, b))
	third, thirdLine := c.request("session/prompt", promptParams(id, "roots"))
	c.send(firstLine, secondLine, thirdLine, notification("$/cancel_request", `{"requestId":`+second+`}`))
	require.Equal(t, jsonrpc.CodeCancelled, c.response(second).Error.Code)
	close(r.hold)
	require.Nil(t, c.response(first).Error)
	require.Equal(t, "end_turn", c.response(third).stopReason(t))
	require.Equal(t, []string{"[" + a + "]"}, texts(c.messages(), id))
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13: nothing changed")
}

func TestA27_ALoadThatTookEffectIsShownWholeThoughItWasCancelled(t *testing.T) {
	store := sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(5000)...)
	load, line := c.request("session/load", rootsParams(id, a, b))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	goOn := c.stall()
	c.send(notification("$/cancel_request", `{"requestId":`+load+`}`))
	c.send(notification("session/cancel", idParams(id)))
	goOn()
	require.Nil(t, c.response(load).Error)
	require.Len(t, texts(c.messages(), id), 5000)
	require.Equal(t, []string{b}, c.find(id).AdditionalDirectories)
	require.Equal(t, []string{"[" + a + ", " + b + "]"}, c.texts(id, "roots"))
}

func TestW9_TheEndOfInputDuringALoadLetsItFinish(t *testing.T) {
	store := sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10, Grace: patience}}))
	c.initialize()
	a := folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(5000)...)
	load, line := c.request("session/load", rootsParams(id, a))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	c.leave()
	require.Nil(t, c.response(load).Error)
	require.Len(t, texts(c.messages(), id), 5000)
}

func TestW9_AClientThatIsGoneEndsItsLoad(t *testing.T) {
	store := sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10, Grace: time.Millisecond}}))
	c.initialize()
	a := folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(5000)...)
	_, line := c.request("session/load", rootsParams(id, a))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	goOn := c.stall()
	defer goOn()
	_ = c.in.Close()
	select {
	case err := <-c.served:
		c.served <- nil
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("a load that nobody reads holds up the end")
	}
}
