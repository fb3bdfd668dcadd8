package acp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replayer is a backend that replays a history of its own when a session is loaded.
type replayer struct {
	scripted
	says  []sessionstore.Update
	fails error // of Open, behind the replay
}

func (r *replayer) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	session, opened, err := r.scripted.Open(ctx, a, h)
	if err != nil || a.Cause != backend.Load {
		return session, opened, err
	}
	for _, u := range r.says {
		if err := h.Replay(ctx, u); err != nil {
			return nil, opened, err
		}
	}
	return session, opened, r.fails
}

// longReplay is the number of updates of a long replay.
var longReplay = volume.Of(6_000, 100_000)

// Clause P7.
func TestBackendReplay(t *testing.T) {
	store := memstore.New(t)
	r := &replayer{says: answers(numbers(longReplay)...)}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	for range 2 { // the second time it is on record
		load, line := c.request("session/load", rootsParams(id, a))
		before := len(c.messages())
		c.send(line)
		require.Nil(t, c.response(load).Error)
		_, answered := c.await(before, isResponse(load))
		require.Equal(t, numbers(longReplay), texts(c.messages()[before:answered], id),
			"shown once, before the answer")
		require.Equal(t, numbers(longReplay), recorded(t, store, id), "and is the record")
	}
	c.texts(id, "say more")
	require.Equal(t, append(numbers(longReplay), "more"), recorded(t, store, id))
}

// answers are messages of the agent.
func answers(texts ...string) (updates []sessionstore.Update) {
	for _, text := range texts {
		updates = append(updates, apart(text))
	}
	return updates
}

// userSaid is a message of the user, in several pieces.
func userSaid(pieces ...string) (updates []sessionstore.Update) {
	for _, text := range pieces {
		updates = append(updates, update(`{"update":{"sessionUpdate":"user_message_chunk","content":`+
			encode(map[string]string{"type": "text", "text": text})+`}}`))
	}
	return updates
}

// recorded are the agent's words in a stored history.
func recorded(t require.TestingT, store sessionstore.Store, id string) []string {
	var messages []message
	for _, u := range updatesOf(t, store, id) {
		messages = append(messages, message{rawrpc.Message{Method: "session/update",
			Params: []byte(`{"sessionId":"` + id + `",` + string(u.Raw[1:]))}})
	}
	return texts(messages, id)
}

// Clause P7.
func TestFailedBackendReplay(t *testing.T) {
	store := memstore.New(t)
	r := &replayer{fails: errors.New("the child died"),
		says: slices.Concat(userSaid("say ours"), answers("ours"), userSaid("more"), answers("theirs"))}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say ours")
	require.NotNil(t, c.try("session/load", rootsParams(id, a)).Error)
	require.Equal(t, []string{"ours"}, recorded(t, store, id))
	require.Equal(t, []string{"still"}, c.texts(id, "say still"), "A12: the session goes on")
}

// Two windows load a session at once that has grown in the agent. What was stored stays, and what
// the agent has of its own is added once.
//
// Clause P7.
func TestReplayKeepsTheRecord(t *testing.T) {
	store := memstore.New(t)
	says := slices.Concat(userSaid("say one"), answers("other"), userSaid("alone"), answers("by itself"))
	first := start(t, acp.Options{Store: store, Backend: using(&replayer{says: says})})
	a := folder(t)
	id := first.open(a)
	first.texts(id, "say one")
	first.texts(id, "/roots") // the backend never sees it
	want := append(recorded(t, store, id), "by itself")
	other := &between{replayer: replayer{says: says},
		then: func() { first.call("session/load", rootsParams(id, a)) }}
	second := start(t, acp.Options{Store: store, Backend: using(other)})
	second.call("session/load", rootsParams(id, a))
	require.Equal(t, want, recorded(t, store, id))
	require.Equal(t, want, texts(second.messages(), id))
}

// between is a replayer at whose replay something happens in another window.
type between struct {
	replayer
	then func()
}

func (b *between) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	session, opened, err := b.replayer.Open(ctx, a, h)
	b.then()
	return session, opened, err
}

// updatesOf returns a stored history.
func updatesOf(t require.TestingT, store sessionstore.Store, id string) []sessionstore.Update {
	all := []sessionstore.Update{}
	for u, err := range store.History(context.Background(), sessionstore.ID(id)) {
		require.NoError(t, err)
		all = append(all, u)
	}
	return all
}

// Clause A27.
func TestBackendReplayInResume(t *testing.T) {
	r, store := &scripted{}, memstore.New(t)
	c := start(t, acp.Options{Backend: using(r), Store: store})
	a := folder(t)
	id := c.open(a)
	r.opened = func(_ backend.Activation, h backend.Host) {
		require.NoError(t, h.Replay(t.Context(), say("old")))
	}
	c.call("session/resume", rootsParams(id, a))
	require.NotContains(t, texts(c.messages(), id), "old")
	require.Equal(t, []string{"old"}, recorded(t, store, id))
}

// A backend that replays too late ends no turn.
func TestReplayAfterOpen(t *testing.T) {
	var host backend.Host
	r := &scripted{opened: func(_ backend.Activation, h backend.Host) { host = h }}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	c.call("session/load", rootsParams(id, a))
	c.beginTurn(id, "wait", "waiting")
	require.ErrorIs(t, host.Replay(t.Context(), say("late")), backend.ErrClosed)
	require.NotContains(t, strings.Join(r.noted(), "\n"), "cancel")
}
