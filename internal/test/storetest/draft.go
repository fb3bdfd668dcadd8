package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

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
	lease := create(t, s, "one")
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
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
	require.Equal(t, before, get(t, s, "one"))
	require.NoError(t, s.Append(t.Context(), lease, nil))
}

func longDraft(t *testing.T, s store) {
	create(t, s, "one")
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
	create(t, s, "one")
	create(t, s, "two")
	d := newDraft(t, s, "one", say("a"))
	_, err := s.Activate(t.Context(), "two", sessionstore.Activation{Keys: keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft, "of another session")
	activate(t, s, "one", sessionstore.Activation{History: d})
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
	require.NoError(t, d.Discard(t.Context()), "the draft was used")
	require.Equal(t, texts(say("a")), history(t, s, "one"))
	require.Empty(t, history(t, s, "two"))
}

func draftOfOtherStore(t *testing.T, s, other store) {
	create(t, s, "one")
	create(t, other, "one")
	d := newDraft(t, other, "one")
	_, err := s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
}

func draftOfDeleted(t *testing.T, s store) {
	_, err := s.NewDraft(t.Context(), "none")
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	create(t, s, "one")
	d := newDraft(t, s, "one", say("a"))
	require.NoError(t, s.Delete(t.Context(), "one"))
	create(t, s, "one")
	_, err = s.Activate(t.Context(), "one", sessionstore.Activation{Keys: keys(t, "app"), History: d})
	require.ErrorIs(t, err, sessionstore.ErrDraft)
}
