package sqlite_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// The rest of a history is not held anywhere: if the session is deleted meanwhile, its reader gets
// an error.
//
// Clause S9.
func TestHistoryReadsOnePageAhead(t *testing.T) {
	const segments = 200
	s := open(t, sqlite.Options{})
	lease := create(t, s, "one")
	for range segments {
		require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say(strings.Repeat("x", 20_000))}))
	}
	next, stop := iter.Pull2(s.History(t.Context(), "one"))
	defer stop()
	_, err, ok := next()
	require.True(t, ok)
	require.NoError(t, err)
	require.NoError(t, open(t, sqlite.Options{Dir: s.Dir()}).Delete(t.Context(), "one"))
	read := 1
	for {
		_, err, ok = next()
		require.True(t, ok, "%d of %d", read, segments)
		if err != nil {
			break
		}
		read++
	}
	require.ErrorAs(t, err, new(*sessionstore.NotFoundError))
	require.Less(t, read, segments/4)
}
