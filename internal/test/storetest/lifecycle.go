package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

func lifecycleTests() []testCase {
	return []testCase{
		{"A19/a created session is found and listed", createdIsFound},
		{"A15/roots keep their spelling and order", rootsComeBack},
		{"A39/roots keep their grants", grantsComeBack},
		{"keys without roots or real paths are rejected", invalidKeys},
		{"A17/activation keeps the spelling of cwd and updates its real path", activationKeepsCwd},
		{"A29/activation and appends are not activity", noActivity},
		{"a call with a cancelled context does nothing", endedContext},
	}
}

func createdIsFound(t *testing.T, s store) {
	createAs(t, s, sessionstore.Session{
		ID: "one", Agent: sessionstore.Agent{Kind: "proxy", Profile: "opencode"}, Keys: Keys(t, "app", "lib"), Title: "a title", State: []byte("child-1"),
	})
	got := get(t, s, "one")
	require.Equal(t, sessionstore.Agent{Kind: "proxy", Profile: "opencode"}, got.Agent)
	require.Equal(t, "a title", got.Title)
	require.Equal(t, got.Created, got.Updated)
	require.Equal(t, time.UTC, got.Updated.Location())
	require.Equal(t, got.Updated, got.Updated.Truncate(time.Millisecond))

	page := list(t, s, sessionstore.Query{})
	require.Len(t, page.Sessions, 1)
	require.Empty(t, page.Next)
	listed := page.Sessions[0]
	require.Nil(t, listed.State, "lists do not contain states")
	requireKeys(t, got.Keys, listed.Keys)
	require.Equal(t, got.Updated, listed.Updated)
	require.Equal(t, got.Agent, listed.Agent)
	require.Equal(t, got.Title, listed.Title)
}

func rootsComeBack(t *testing.T, s store) {
	want := linked(t, "app", []string{"z", "a <b> & \"c\"", "ünï\ncode", "app/nested"}, []string{"real/app", "same", "same", "ü", "n"})
	createAs(t, s, sessionstore.Session{ID: "one", Keys: want})
	requireKeys(t, want, get(t, s, "one").Keys)
}

func grantsComeBack(t *testing.T, s store) {
	want := Keys(t, "app", "lib", "dep")
	want.Roots = want.Roots.Granting(func(d workspace.Dir) workspace.Grant {
		if d == want.Roots.At(0) || d == want.Roots.At(2) {
			return workspace.ReadOnly
		}
		return workspace.ReadWrite
	})
	lease := createAs(t, s, sessionstore.Session{ID: "one", Keys: want})
	requireKeys(t, want, get(t, s, "one").Keys)
	page := list(t, s, sessionstore.Query{})
	requireKeys(t, want, page.Sessions[0].Keys)
	fork(t, s, "one", sessionstore.Session{ID: "two", Keys: want})
	requireKeys(t, want, get(t, s, "two").Keys)
	next := Keys(t, "app", "dep")
	activate(t, s, lease.ID, sessionstore.Activation{Keys: next})
	requireKeys(t, next, get(t, s, "one").Keys)
}

func invalidKeys(t *testing.T, s store) {
	short := Keys(t, "app", "lib")
	short.Real = short.Real[:1]
	for name, k := range map[string]sessionstore.Keys{"no roots": {}, "too few real paths": short} {
		_, err := s.Create(t.Context(), sessionstore.Session{ID: "one", Agent: explore(), Keys: k})
		require.Error(t, err, name)
	}
	lease := Create(t, s, "two")
	_, err := s.Activate(t.Context(), "two", sessionstore.Activation{Keys: short})
	require.Error(t, err)
	_, err = s.Move(t.Context(), lease, short)
	require.Error(t, err)
	requireKeys(t, Keys(t, "app"), get(t, s, "two").Keys)
}

func activationKeepsCwd(t *testing.T, s store) {
	createAs(t, s, sessionstore.Session{ID: "one", Keys: linked(t, "link", nil, []string{"app"})})
	activate(t, s, "one", sessionstore.Activation{
		Keys: linked(t, "app", []string{"lib", "link", "docs"}, []string{"moved", "lib", "moved", "docs"}),
	})
	requireKeys(t, linked(t, "link", []string{"lib", "docs"}, []string{"moved", "lib", "docs"}), get(t, s, "one").Keys)
}

func noActivity(t *testing.T, s store) {
	Create(t, s, "one")
	before := get(t, s, "one")
	lease := activate(t, s, "one", sessionstore.Activation{Keys: Keys(t, "app", "lib")})
	require.NoError(t, s.Append(t.Context(), lease, []update{say("x"), mode("ask")}))
	require.NoError(t, s.SetTitle(t.Context(), lease, "x"))
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), ""))
	require.NoError(t, s.EndTurn(t.Context(), lease, 1), "no turn runs")
	after := get(t, s, "one")
	require.Equal(t, before.Updated, after.Updated)
	require.Equal(t, before.Created, after.Created)
}

func endedContext(t *testing.T, s store) {
	lease := Create(t, s, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, sessionstore.Session{ID: "two", Agent: explore(), Keys: Keys(t, "app")})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Append(ctx, lease, []update{say("x")}), context.Canceled)
	require.ErrorIs(t, s.Delete(ctx, "one"), context.Canceled)
	_, err = s.List(ctx, sessionstore.Query{})
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range s.History(ctx, "one") {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.Append(t.Context(), lease, []update{say("y")}), "no transaction is left open")
	require.Equal(t, texts(say("y")), history(t, s, "one"))
	_, err = s.Get(t.Context(), "two")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func closed(t *testing.T, s store) {
	lease := Create(t, s, "one")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "again")
	_, err := s.Get(t.Context(), "one")
	require.ErrorIs(t, err, sessionstore.ErrClosed)
	require.ErrorIs(t, s.Append(t.Context(), lease, nil), sessionstore.ErrClosed)
	_, err = s.List(t.Context(), sessionstore.Query{})
	require.ErrorIs(t, err, sessionstore.ErrClosed)
}

func draftTests() []testCase {
	return []testCase{
		{"P7/a draft is hidden until it is added to a history", draftIsHidden},
		{"P7/a long draft is stored segment by segment", longDraft},
		{"P7/a draft can be used once", draftOnce},
		{"S10/a draft is deleted with its session", draftOfDeleted},
	}
}

// newDraft returns a draft with one segment.
func newDraft(t require.TestingT, s store, id string, updates ...update) sessionstore.Draft {
	d, err := s.NewDraft(contextOf(t), sessionstore.ID(id))
	require.NoError(t, err)
	require.NoError(t, d.Append(contextOf(t), updates))
	return d
}

func draftIsHidden(t *testing.T, s store) {
	lease := Create(t, s, "one")
	record(t, s, lease, "ours", mode("ask"))
	before := get(t, s, "one")
	d := newDraft(t, s, "one", say("theirs"), mode("code"))
	require.Equal(t, texts(text("user_message_chunk", "ours")), history(t, s, "one"))
	require.Equal(t, texts(mode("ask")), states(t, s, "one"))
	require.Equal(t, before, get(t, s, "one"))
	require.Len(t, listAll(t, s, sessionstore.Query{}), 1)
	require.NoError(t, d.Discard(t.Context()))
	require.NoError(t, d.Discard(t.Context()), "again")
	require.ErrorIs(t, d.Append(t.Context(), []update{say("late")}), sessionstore.ErrDraft)
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{Keys: Keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
	require.Equal(t, before, get(t, s, "one"))
	require.NoError(t, s.Append(t.Context(), lease, nil))
}

func longDraft(t *testing.T, s store) {
	Create(t, s, "one")
	d := newDraft(t, s, "one")
	var want []string
	for i := range 50 {
		var segment []update
		for j := range 100 {
			segment = append(segment, say(fmt.Sprint(i, " ", j)), mode(fmt.Sprintf("%d.%d", i, j)))
			want = append(want, say(fmt.Sprint(i, " ", j)).String())
		}
		require.NoError(t, d.Append(t.Context(), segment))
	}
	lease := activate(t, s, "one", sessionstore.Activation{History: d})
	require.Equal(t, want, history(t, s, "one"))
	require.Equal(t, texts(mode("49.99")), states(t, s, "one"))
	require.NoError(t, s.Append(t.Context(), lease, []update{say("more")}))
	require.Equal(t, append(want, say("more").String()), history(t, s, "one"))
}

func draftOnce(t *testing.T, s store) {
	Create(t, s, "one")
	Create(t, s, "two")
	d := newDraft(t, s, "one", say("a"))
	_, err := s.Activate(t.Context(), "two", sessionstore.Activation{Keys: Keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft, "of another session")
	activate(t, s, "one", sessionstore.Activation{History: d})
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: Keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
	require.NoError(t, d.Discard(t.Context()), "the draft was used")
	require.Equal(t, texts(say("a")), history(t, s, "one"))
	require.Empty(t, history(t, s, "two"))
}

func draftOfOtherStore(t *testing.T, s, other store) {
	Create(t, s, "one")
	Create(t, other, "one")
	d := newDraft(t, other, "one")
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{Keys: Keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
}

func draftOfDeleted(t *testing.T, s store) {
	_, err := s.NewDraft(t.Context(), "none")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	Create(t, s, "one")
	d := newDraft(t, s, "one", say("a"))
	require.NoError(t, s.Delete(t.Context(), "one"))
	Create(t, s, "one")
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: Keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
}
