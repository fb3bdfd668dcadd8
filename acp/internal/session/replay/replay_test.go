package replay

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drafts is a store that notes the segments of its draft, and whether that was discarded.
type drafts struct {
	sessionstore.Store
	panics    bool // in the draft
	segments  []int
	discarded bool
}

type draft struct {
	sessionstore.Draft
	in *drafts
}

func (d *drafts) NewDraft(ctx context.Context, id sessionstore.ID) (sessionstore.Draft, error) {
	made, err := d.Store.NewDraft(ctx, id)
	return draft{made, d}, err
}

func (d draft) Append(ctx context.Context, segment []sessionstore.Update) error {
	if d.in.panics {
		panic("in a draft")
	}
	d.in.segments = append(d.in.segments, len(segment))
	return d.Draft.Append(ctx, segment)
}

func (d draft) Discard(ctx context.Context) error {
	d.in.discarded = true
	return d.Draft.Discard(ctx)
}

// begin returns a replay of a session with a stored history, and what the client is shown of it.
func begin(t *testing.T, s sessionstore.Store, cause backend.Cause, stored string) (
	r *Replay, lease sessionstore.Lease, shown *[]backend.Update,
) {
	lease, shown = storetest.Create(t, s, "s"), new([]backend.Update)
	require.NoError(t, s.Append(t.Context(), lease, updates(stored)))
	log := slog.New(slog.DiscardHandler)
	r = New(Options{Cause: cause, Stored: "s", Store: s, Tasks: tasks.NewGroup(log), Log: log,
		Subagents: record.NewSubagentLimit(400, log), Recorder: sessionstore.RecorderOptions{SegmentBytes: 500},
		Show: func(_ context.Context, u backend.Update) error {
			*shown = append(*shown, u)
			return nil
		}})
	t.Cleanup(func() { r.Drop(context.Background()) })
	return r, lease, shown
}

// Clauses A27, P7.
func TestReplay(t *testing.T) {
	for name, c := range map[string]struct {
		cause                         backend.Cause
		stored, replayed, shown, kept string
	}{
		"a load of an empty session":   {backend.Load, "", ">a|1|=", ">a|1|=", ">a|1"},
		"a resume of an empty session": {backend.Resume, "", ">a|1", "", ">a|1"},
		"nothing new":                  {backend.Load, ">a|1", ">a|1", "", ">a|1"},
		"more":                         {backend.Load, ">a|1", ">a|x|>b|2", "", ">a|1|>b|2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memstore.New(t)
			r, lease, shown := begin(t, s, c.cause, c.stored)
			for _, u := range updates(c.replayed) {
				require.NoError(t, r.Add(t.Context(), u))
			}
			require.Equal(t, c.shown, describe(*shown))
			require.Equal(t, c.shown != "", r.Shown())
			added, err := r.Take(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.kept == c.stored, added == nil)
			_, err = s.Activate(t.Context(), "s", sessionstore.Activation{
				Keys: storetest.Keys(t, "app"), Held: lease.Generation, History: added})
			require.NoError(t, err)
			var kept []sessionstore.Update
			for u, err := range s.History(t.Context(), "s") {
				require.NoError(t, err)
				kept = append(kept, u)
			}
			require.Equal(t, c.kept, describe(kept))
		})
	}
}

// A history is stored as it comes, whatever its length, but for what subagents say beyond their
// limit. It is discarded unless the session takes it.
//
// Clauses A36, P7.
func TestLongReplay(t *testing.T) {
	s := &drafts{Store: memstore.New(t)}
	r, _, _ := begin(t, s, backend.Resume, "")
	turn := append(updates(">a|1"), sessionstore.OfSubagent("sub_a", backend.Text("2")))
	for _, u := range slices.Repeat(turn, 100) {
		require.NoError(t, r.Add(t.Context(), u))
	}
	_, err := r.Take(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, r.Add(t.Context(), backend.Text("late")), backend.ErrClosed)
	require.Greater(t, len(s.segments), 10)
	stored := 0
	for _, n := range s.segments {
		stored += n
	}
	require.InDelta(t, 203, stored, 2)
	require.False(t, s.discarded)
	r.Drop(t.Context())
	require.True(t, s.discarded)
}

// Clause W8.
func TestPanicsOfDraft(t *testing.T) {
	r, _, _ := begin(t, &drafts{Store: memstore.New(t), panics: true}, backend.Load, "")
	require.NoError(t, r.Add(t.Context(), backend.Text("x")))
	_, err := r.Take(t.Context())
	require.ErrorIs(t, err, tasks.ErrPanicked)
}

// What was replayed does not follow a history that has grown meanwhile.
//
// Clause P7.
func TestFollows(t *testing.T) {
	for meanwhile, follows := range map[string]bool{"": true, "more": false, ">b|2": false} {
		for _, stored := range []string{"", ">a|1"} {
			s := memstore.New(t)
			r, lease, _ := begin(t, s, backend.Resume, stored)
			require.NoError(t, r.Add(t.Context(), backend.Text("x")))
			require.NoError(t, s.Append(t.Context(), lease, updates(meanwhile)))
			got, err := r.Follows(t.Context())
			require.NoError(t, err)
			require.Equal(t, follows, got, stored+"|"+meanwhile)
		}
	}
}

// Clause A27.
func TestOnlyALoadOrResumeReplays(t *testing.T) {
	for _, cause := range []backend.Cause{backend.New, backend.Fork} {
		r, _, _ := begin(t, memstore.New(t), cause, "")
		require.ErrorContains(t, r.Add(t.Context(), backend.Text("x")), "only a load or resume")
	}
}
