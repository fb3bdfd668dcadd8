package budget

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// countingStore counts how often a session is read.
type countingStore struct {
	sessionstore.Store
	reads int
}

func (s *countingStore) Get(
	ctx context.Context, id sessionstore.ID,
) (sessionstore.Session, error) {
	s.reads++
	return s.Store.Get(ctx, id)
}

// A session that has several sums is looked up once for each sum of a budget.
//
// Clause K1.
func TestSpentReadsASessionOnce(t *testing.T) {
	store := &countingStore{Store: memstore.New(t)}
	roots, err := workspace.NewRoots(t.TempDir(), nil)
	require.NoError(t, err)
	lease, err := store.Create(t.Context(), sessionstore.Session{ID: sessionstore.NewID(),
		Agent: sessionstore.Agent{Kind: "k", Profile: "p"},
		Keys:  sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd()}}})
	require.NoError(t, err)
	for _, mark := range []sessionstore.Mark{"", sessionstore.PartialMark, sessionstore.ResetMark} {
		require.NoError(t, store.Charge(t.Context(), lease, []sessionstore.Charge{{At: time.Now(),
			Meter: sessionstore.CostMeter, Unit: "USD", Amount: 2, Mark: mark}}))
	}
	b := Budgets{Session: sessionstore.NewID(), Store: store,
		Origins: func() (none worktree.Origins) { return none }}
	sum, err := b.spent(t.Context(),
		Budget{Amount: 5, Currency: "USD", Per: PerDay, Within: roots.Cwd()})
	require.NoError(t, err)
	require.InDelta(t, 6, sum, 1e-9)
	require.Equal(t, 1, store.reads)
}
