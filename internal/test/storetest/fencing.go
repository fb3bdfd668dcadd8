package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

func fencingTests() []testCase {
	return []testCase{
		{"S3/every write with an older lease fails", olderLease},
		{"S8/deleted and fenced are different errors", deletedNotFenced},
		{"S3/an activation by a fenced holder fails", fencedHolder},
		{"S3, A17/a move changes both keys and fences the holder", moveFences},
	}
}

// writes returns the calls that need a lease.
func writes() map[string]func(context.Context, store, sessionstore.Lease) error {
	return map[string]func(context.Context, store, sessionstore.Lease) error{
		"BeginTurn": func(ctx context.Context, s store, l sessionstore.Lease) error {
			_, err := s.BeginTurn(ctx, l, sessionstore.Turn{Prompt: []update{say("old")}, Title: "old"})
			return err
		},
		"Append": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.Append(ctx, l, []update{say("old"), mode("old")})
		},
		"Append nothing": func(ctx context.Context, s store, l sessionstore.Lease) error { return s.Append(ctx, l, nil) },
		"EndTurn": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.EndTurn(ctx, l, 1)
		},
		"TakeBackTurn": func(ctx context.Context, s store, l sessionstore.Lease) error {
			_, err := s.TakeBackTurn(ctx, l, 1, sessionstore.Turn{Prompt: []update{say("first")}})
			return err
		},
		"SetTitle": func(ctx context.Context, s store, l sessionstore.Lease) error { return s.SetTitle(ctx, l, "old") },
		"SaveState": func(ctx context.Context, s store, l sessionstore.Lease) error {
			return s.SaveState(ctx, l, []byte("old"), "")
		},
	}
}

func olderLease(t *testing.T, s store) {
	old := create(t, s, "one")
	begin(t, s, old, sessionstore.Turn{Prompt: []update{say("first")}})
	current := activate(t, s, "one", sessionstore.Activation{})
	before := get(t, s, "one")
	for name, write := range writes() {
		var fenced *sessionstore.FencedError
		require.ErrorAs(t, write(t.Context(), s, old), &fenced, name)
		require.Equal(t, sessionstore.FencedError{ID: "one", Held: old.Generation, Current: current.Generation}, *fenced, name)
		require.ErrorContains(t, fenced, "opened in another window; load it again", name)
	}
	require.Equal(t, texts(say("first")), history(t, s, "one"))
	require.Empty(t, states(t, s, "one"))
	require.Equal(t, before.Turns, get(t, s, "one").Turns)
	require.Empty(t, get(t, s, "one").Title)
	require.Nil(t, get(t, s, "one").State)
	for name, write := range writes() {
		require.NoError(t, write(t.Context(), s, current), name)
	}
}

func deletedNotFenced(t *testing.T, s store) {
	fenced := create(t, s, "one")
	current := activate(t, s, "one", sessionstore.Activation{})
	require.NoError(t, s.Delete(t.Context(), "one"))
	for name, write := range writes() {
		for _, lease := range []sessionstore.Lease{fenced, current} {
			require.ErrorAs(t, write(t.Context(), s, lease), new(*sessionstore.NotFoundError), name)
		}
	}
}

func fencedHolder(t *testing.T, s store) {
	old := create(t, s, "one")
	newer := activate(t, s, "one", sessionstore.Activation{Held: old.Generation})
	begin(t, s, newer, sessionstore.Turn{Prompt: []update{say("newer")}})
	before := get(t, s, "one")
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{
		Keys: keys(t, "app", "lib"), State: []byte("old"), History: newDraft(t, s, "one", say("old")), Held: old.Generation,
	})
	var fenced *sessionstore.FencedError
	require.ErrorAs(t, err, &fenced)
	require.Equal(t, sessionstore.FencedError{ID: "one", Held: old.Generation, Current: newer.Generation}, *fenced)
	require.Equal(t, before, get(t, s, "one"), "nothing changed")
	require.Equal(t, texts(say("newer")), history(t, s, "one"))
	fork(t, s, "one", sessionstore.Session{ID: "fork"})
	require.Empty(t, history(t, s, "fork"), "the newer holder's turn is running")
	require.NoError(t, s.EndTurn(t.Context(), newer, 1))

	require.NoError(t, s.Delete(t.Context(), "one"))
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), Held: newer.Generation})
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
}

func moveFences(t *testing.T, s store) {
	old := create(t, s, "one")
	record(t, s, old, "asked", say("answered"), mode("m"))
	require.NoError(t, s.SaveState(t.Context(), old, []byte("state"), "key"))
	before := get(t, s, "one")
	to := linked(t, "link", []string{"a", "b"}, []string{"real", "a", "c"})
	moved, err := s.Move(t.Context(), old, to)
	require.NoError(t, err)
	require.Greater(t, moved.Generation, old.Generation)

	after := get(t, s, "one")
	requireKeys(t, to, after.Keys)
	require.Equal(t, moved.Generation, after.Generation)
	after.Keys, after.Generation = before.Keys, before.Generation
	require.Equal(t, before, after, "nothing else changed")
	require.Equal(t, texts(text("user_message_chunk", "asked"), say("answered")), history(t, s, "one"))

	require.ErrorAs(t, s.Append(t.Context(), old, []update{say("late")}), new(*sessionstore.FencedError))
	_, err = s.Move(t.Context(), old, before.Keys)
	require.ErrorAs(t, err, new(*sessionstore.FencedError))
	_, err = s.Move(t.Context(), moved, sessionstore.Keys{})
	require.Error(t, err)
	_, err = s.Move(t.Context(), sessionstore.Lease{ID: "none"}, to)
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	requireKeys(t, to, get(t, s, "one").Keys)
	require.NoError(t, s.Append(t.Context(), moved, nil))
}
