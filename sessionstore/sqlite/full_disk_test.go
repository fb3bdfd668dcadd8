package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// TestS4_ADiskMayBeFullAtAnyWrite lets a store have room for ever more writes. Whenever it has none left, a person is
// told which file that is and what to do, nothing that was acknowledged is lost, and the store goes on once there is room.
func TestS4_ADiskMayBeFullAtAnyWrite(t *testing.T) {
	for _, journal := range []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback} {
		t.Run("S4/"+string(journal), func(t *testing.T) {
			full := true
			for room := int64(0); full; room += 1 + room/5 {
				full = fillUp(t, journal, room)
			}
		})
	}
}

// fillUp uses a new store on a disk with room for so many writes, and reports whether they were too few.
func fillUp(t *testing.T, journal sqlite.Journal, room int64) (full bool) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r, stop := record(t, dir)
	defer stop()
	r.room.Store(room)
	s := sqlite.New(sqlite.Options{Dir: dir}.WithJournal(journal))
	lease, err := s.Create(t.Context(), sessionstore.NewSession{ID: "one", Keys: rooted(t, "app")})
	full = tookPlace(t, err, dir)
	if full {
		r.room.Store(-1)
		lease = create(t, s, "one")
		r.room.Store(0)
	}
	words := 0
	for n := range 20 {
		err := s.Append(t.Context(), lease, []sessionstore.Update{say(fmt.Sprint(n) + strings.Repeat("x", 9_000))})
		if tookPlace(t, err, dir) {
			full = true
			break
		}
		words++
	}
	r.room.Store(-1)
	require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("there is room again")}))
	require.NoError(t, s.Close())

	s = sqlite.New(sqlite.Options{Dir: dir})
	found := 0
	for _, err := range s.History(t.Context(), "one") {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, words+1, found, "with room for %d writes", room)
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.NoError(t, s.Close())
	require.Equal(t, "ok", integrity(t, dir))
	return full
}

// tookPlace reports whether err is that there is no room. It is nil or that, and tells a person enough.
func tookPlace(t *testing.T, err error, dir string) bool {
	t.Helper()
	if err == nil {
		return false
	}
	var unavailable *sessionstore.UnavailableError
	require.True(t, errors.As(err, &unavailable), "%v", err)
	requireUnavailable(t, err, filepath.Join(dir, "sessions.db"), "free some space")
	return true
}
