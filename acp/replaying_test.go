package acp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// replayer is a runtime that replays a history of its own when a session is loaded.
type replayer struct {
	scripted
	says  []string
	fails error // of Open, behind the replay
}

func (r *replayer) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	session, opened, err := r.scripted.Open(ctx, a, h)
	if err != nil || a.Cause != backend.Load {
		return session, opened, err
	}
	for _, text := range r.says {
		if err := h.Replay(ctx, apart(text)); err != nil {
			return nil, opened, err
		}
	}
	opened.Replay = backend.FromBackend
	return session, opened, r.fails
}

// weighed is a store that notes how long the segments of drafts are, and how many drafts are neither used nor discarded.
type weighed struct {
	*sqlite.Store
	segments, longest, drafts atomic.Int64
}

type weighedDraft struct {
	sessionstore.Draft
	store *weighed
}

func (w *weighed) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	d, err := w.Store.NewDraft(ctx, id)
	w.drafts.Add(1)
	return weighedDraft{d, w}, err
}

func (w *weighed) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if d, ok := a.History.(weighedDraft); ok {
		a.History = d.Draft
	}
	return w.Store.Activate(ctx, id, a)
}

func (d weighedDraft) Append(ctx context.Context, segment []sessionstore.Update) error {
	d.store.segments.Add(1)
	d.store.longest.Store(max(d.store.longest.Load(), int64(len(encode(segment)))))
	return d.Draft.Append(ctx, segment)
}

func (d weighedDraft) Discard(ctx context.Context) error {
	d.store.drafts.Add(-1)
	return d.Draft.Discard(ctx)
}

func TestP7_ALongReplayOfTheRuntimeReplacesTheRecord(t *testing.T) {
	store := &weighed{Store: sqlite.New(sqlite.Options{Dir: t.TempDir()})}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r := &replayer{says: numbers(longReplay)}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say ours")
	load, line := c.request("session/load", rootsParams(id, a))
	before := len(c.messages())
	c.send(line)
	require.Nil(t, c.response(load).Error)
	_, answered := c.await(before, isResponse(load))
	require.Equal(t, numbers(longReplay), texts(c.messages()[before:answered], id), "shown once, before the answer")
	require.Equal(t, numbers(longReplay), recorded(t, store, id), "and is the record")
	require.Greater(t, store.segments.Load(), int64(longReplay/2000), "stored as it came")
	require.Less(t, store.longest.Load(), int64(256<<10))
	require.Zero(t, store.drafts.Load())
	c.texts(id, "say more")
	require.Equal(t, append(numbers(longReplay), "more"), recorded(t, store, id))
}

// recorded are the agent's words in a stored history.
func recorded(t *testing.T, store sessionstore.Store, id string) []string {
	t.Helper()
	var messages []message
	for u, err := range store.History(t.Context(), sessionstore.ID(id)) {
		require.NoError(t, err)
		messages = append(messages, message{Method: "session/update", Params: []byte(`{"sessionId":"` + id + `",` + string(u[1:]))})
	}
	return texts(messages, id)
}

func TestP7_AReplayThatFailsLeavesTheRecord(t *testing.T) {
	store := &weighed{Store: sqlite.New(sqlite.Options{Dir: t.TempDir()})}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r := &replayer{says: numbers(10), fails: errors.New("the child died")}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say ours")
	require.NotNil(t, c.try("session/load", rootsParams(id, a)).Error)
	require.Equal(t, []string{"ours"}, recorded(t, store, id))
	require.Zero(t, store.drafts.Load(), "what was replayed is dropped")
	require.Equal(t, []string{"still"}, c.texts(id, "say still"), "A12: the session goes on")

	r.fails, r.says = nil, nil
	c.call("session/load", rootsParams(id, a))
	require.Empty(t, recorded(t, store, id), "a runtime that has nothing says so")
}

func TestA27_AResumeShowsNoneOfTheRuntimesHistory(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	var err error
	r.opened = func(_ backend.Activation, h backend.Host) { err = h.Replay(t.Context(), say("old")) }
	c.call("session/resume", rootsParams(id, a))
	require.ErrorContains(t, err, "outside of a load")
	require.NotContains(t, encode(c.messages()), "old")
}
