package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Clause P7.
func TestOldDraftsAreDeleted(t *testing.T) {
	now := time.Now()
	s := New(Options{Dir: t.TempDir(), Now: func() time.Time { return now }, eraseDelay: time.Millisecond})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	segments := func() (n int) {
		require.NoError(t, s.use(t.Context(), func(db *database) error {
			return db.reader.QueryRowContext(t.Context(), "SELECT count(*) FROM segments").Scan(&n)
		}))
		return n
	}
	made(t, s, "one")
	left, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, left.Append(t.Context(), updates(3)))
	now = now.Add(rules.MaxDraftAge)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, 1, segments())
	now = now.Add(time.Millisecond)
	_, err = s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return segments() == 0 }, time.Minute, time.Millisecond)
	require.ErrorIs(t, left.Append(t.Context(), updates(3)), sessionstore.ErrDraft)
}
