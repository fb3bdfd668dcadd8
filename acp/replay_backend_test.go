package acp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
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

// weighed is a store that notes how long the segments of drafts are, and how many drafts are
// neither used nor discarded.
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

func (w *weighed) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (sessionstore.Lease, error) {
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

// longReplay is the number of updates of a long replay.
var longReplay = volume.Of(6_000, 100_000)

// Clause P7.
func TestBackendReplay(t *testing.T) {
	store := &weighed{Store: sqlite.New(sqlite.Options{Dir: t.TempDir()})}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
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
	require.Greater(t, store.segments.Load(), int64(longReplay/2000), "stored as it came")
	require.Less(t, store.longest.Load(), int64(256<<10))
	require.Zero(t, store.drafts.Load())
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
	store := &weighed{Store: sqlite.New(sqlite.Options{Dir: t.TempDir()})}
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r := &replayer{fails: errors.New("the child died"),
		says: slices.Concat(userSaid("say ours"), answers("ours"), userSaid("more"), answers("theirs"))}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say ours")
	require.NotNil(t, c.try("session/load", rootsParams(id, a)).Error)
	require.Equal(t, []string{"ours"}, recorded(t, store, id))
	require.Zero(t, store.drafts.Load(), "what was replayed is dropped")
	require.Equal(t, []string{"still"}, c.texts(id, "say still"), "A12: the session goes on")
}

// What was stored stays, whatever the backend replays, and is what the client is shown. Only what
// surely comes after it is added.
//
// Clause P7.
func TestReplayKeepsTheRecord(t *testing.T) {
	first := slices.Concat(userSaid("say one"), answers("one"))
	second := slices.Concat(userSaid("say two"), answers("two"))
	third := slices.Concat(userSaid("say three"), answers("three"))
	all := slices.Concat(first, second, third)
	alone := slices.Concat(userSaid("alone"), answers("by itself"))
	state := []sessionstore.Update{
		update(`{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`)}
	ours := []string{"one", "two", "three"}
	for name, tc := range map[string]struct {
		replays []sessionstore.Update
		added   []string
	}{
		"nothing":              {},
		"a notice":             {replays: answers("Session restored.")},
		"the first turn":       {replays: first},
		"the last turn":        {replays: third},
		"without the last one": {replays: slices.Concat(first, second)},
		"without an answer":    {replays: all[:5]},
		"another conversation": {replays: alone},
		"a longer prompt": {replays: slices.Concat(first, second, userSaid("say three more"),
			answers("x"))},
		"everything":        {replays: all},
		"a turn of its own": {slices.Concat(all, alone), []string{"by itself"}},
		"other answers": {slices.Concat(userSaid("say three"), answers("3"), alone),
			[]string{"by itself"}},
		"in pieces": {slices.Concat(userSaid(" say "), state, userSaid("thr", "ee\n"), answers("3"),
			alone), []string{"by itself"}},
		"the last prompt again": {slices.Concat(all, userSaid("say three"), answers("3")),
			[]string{"3"}},
		"a command of ours": {replays: slices.Concat(all, userSaid("/roots add x"), answers("What?"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(t)
			c := start(t, acp.Options{Store: store, Backend: using(&replayer{says: tc.replays})})
			a := folder(t)
			id := c.open(a)
			for _, word := range ours {
				c.texts(id, "say "+word)
			}
			c.texts(id, "/roots") // the backend never sees it
			want := append(recorded(t, store, id), tc.added...)
			for range 2 {
				before := len(c.messages())
				c.call("session/load", rootsParams(id, a))
				require.Equal(t, want, texts(c.messages()[before:], id))
				require.Equal(t, want, recorded(t, store, id))
			}
		})
	}
}

// Two windows load a session at once that has grown in the agent. What it has of its own is added
// by one of them only, and a turn that ended meanwhile is not added again.
//
// Clause P7.
func TestReplayBesideAnotherWindow(t *testing.T) {
	one := slices.Concat(userSaid("say one"), answers("one"))
	two := slices.Concat(userSaid("say two"), answers("two"))
	alone := slices.Concat(userSaid("alone"), answers("by itself"))
	for name, tc := range map[string]struct {
		stored  string
		replays []sessionstore.Update
		says    string
		want    []string
	}{
		"both add": {"say one", slices.Concat(one, alone), "", []string{"one", "by itself"}},
		"a turn":   {"say one", slices.Concat(one, two), "say two", []string{"one", "two"}},
		"first":    {"", one, "", []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(t)
			r := &replayer{says: tc.replays}
			first := start(t, acp.Options{Store: store, Backend: using(r)})
			a := folder(t)
			id := first.open(a)
			if tc.stored != "" {
				first.texts(id, tc.stored)
			}
			other := &between{replayer: replayer{says: tc.replays}, then: func() {
				if tc.says != "" {
					first.texts(id, tc.says)
				} else {
					first.call("session/load", rootsParams(id, a))
				}
			}}
			second := start(t, acp.Options{Store: store, Backend: using(other)})
			second.call("session/load", rootsParams(id, a))
			require.Equal(t, tc.want, recorded(t, store, id))
			require.Equal(t, tc.want, texts(second.messages(), id))
		})
	}
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

// Random conversations meet random replays: parts of them, those of others, doubled, in another
// order, and broken off. No turn that was answered is lost or changed.
//
// Clause P7.
func TestReplayNeverTakesAway(t *testing.T) {
	r := &replayer{}
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	rapid.Check(t, func(t *rapid.T) {
		id := c.open(a)
		defer c.call("session/delete", `{"sessionId":"`+id+`"}`)
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4)
		for _, word := range words.Draw(t, "stored") {
			c.texts(id, "say "+word)
		}
		for range rapid.IntRange(1, 3).Draw(t, "loads") {
			before := updatesOf(t, store, id)
			r.says = drawReplay(t, before)
			r.fails = rapid.SampledFrom([]error{nil, nil, errors.New("broken off")}).Draw(t, "fails")
			from := len(c.messages())
			failed := c.try("session/load", rootsParams(id, a)).Error != nil
			after := updatesOf(t, store, id)
			require.GreaterOrEqual(t, len(after), len(before))
			require.Equal(t, before, after[:len(before)])
			if failed {
				require.Equal(t, before, after)
			} else if len(before) > 0 {
				require.Equal(t, strings.Join(recorded(t, store, id), ""),
					strings.Join(texts(c.messages()[from:], id), ""), "chunks may be sent as one")
			}
			if rapid.Bool().Draw(t, "goes on") {
				c.texts(id, "say d")
			}
		}
	})
}

// drawReplay returns what a backend may replay of a stored history.
func drawReplay(t *rapid.T, stored []sessionstore.Update) (replay []sessionstore.Update) {
	source := slices.Concat(stored, userSaid("say x"), answers("x"))
	if rapid.Bool().Draw(t, "all first") {
		replay = slices.Clone(stored)
	}
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(source)-1), 0, 6).Draw(t, "pieces") {
		replay = append(replay, source[i:min(len(source), i+2)]...)
	}
	return replay[:rapid.IntRange(0, len(replay)).Draw(t, "length")]
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
	errs := make(map[backend.Cause]error)
	r.opened = func(a backend.Activation, h backend.Host) {
		errs[a.Cause] = h.Replay(t.Context(), say("old"))
	}
	c.call("session/resume", rootsParams(id, a))
	c.call("session/fork", rootsParams(id, a))
	require.NoError(t, errs[backend.Resume])
	require.ErrorContains(t, errs[backend.Fork], "only a load or resume")
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
