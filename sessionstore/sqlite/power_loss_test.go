package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// TestS1_PowerLossMayLoseTheLastCommitsNeverTheStore takes the power away again and again: from what a store in
// use did to its files it makes what a disk may hold then, on which nothing is certain but what was synced, and opens
// that.
func TestS1_PowerLossMayLoseTheLastCommitsNeverTheStore(t *testing.T) {
	for _, journal := range []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback} {
		t.Run("S1/"+string(journal), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, 6))
			deeds := eventful(t, journal, random)
			const failures = 40
			disk := powerless{files: map[int][]byte{}, names: map[string]int{}}
			for i, d := range deeds {
				disk.do(d)
				if random.IntN(len(deeds)) < failures {
					dir := t.TempDir()
					chance := []float64{0, 0.5, 0.99, 1}[random.IntN(4)]
					disk.leave(t, dir, random, chance)
					when := fmt.Sprintf("behind deed %d of %d, what was not synced kept with %v", i, len(deeds), chance)
					requireStanding(t, dir, disk.promised, disk.answers, when)
				}
			}
			require.GreaterOrEqual(t, disk.promised, answers-1, "a store that was closed loses at most what came last")
		})
	}
}

// answers is how many answers [eventful] waits for.
const answers = 110

// eventful uses a new store for a while and returns what became of its files. The first answer is for the
// session "one", each other for one more word in it.
func eventful(t *testing.T, journal sqlite.Journal, random *rand.Rand) []deed {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r, stop := record(t, dir)
	defer stop()
	s := sqlite.New(sqlite.Options{Dir: dir}.WithJournal(journal))
	lease := create(t, s, "one")
	r.answered()
	for n := range answers - 1 {
		words := []sessionstore.Update{say(fmt.Sprint(n)), say(strings.Repeat("x", random.IntN(100_000)))}
		require.NoError(t, s.Append(t.Context(), lease, words))
		r.answered()
		if n%7 == 0 {
			other := create(t, s, fmt.Sprint("other ", n))
			prompt := []sessionstore.Update{say(strings.Repeat("y", 60_000))}
			require.NoError(t, s.BeginTurn(t.Context(), other, sessionstore.Turn{Prompt: prompt}))
		}
		if n == 20 || n == 40 {
			require.NoError(t, s.Delete(t.Context(), sessionstore.ID(fmt.Sprint("other ", n-n%7))))
		}
	}
	require.NoError(t, s.Close())
	return r.recorded()
}

// requireStanding opens the store in dir, and finds no fewer answers kept than least, none that was not given, and
// nothing that is broken.
func requireStanding(t *testing.T, dir string, least, given int, when string) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: dir})
	page, err := s.List(t.Context(), sessionstore.Query{Limit: sessionstore.MaxPageSize})
	require.NoError(t, err, when)
	for _, session := range page.Sessions {
		for _, err := range s.History(t.Context(), session.ID) {
			require.NoError(t, err, when)
		}
	}
	kept := keptAnswers(t, s, when)
	require.GreaterOrEqual(t, kept, least, when)
	require.LessOrEqual(t, kept, given+1, when)
	create(t, s, "after")
	require.NoError(t, s.Close(), when)
	require.Equal(t, "ok", integrity(t, dir), when)
}

// keptAnswers is how many of the answers to [eventful] are in s, of which those that are form an unbroken row.
func keptAnswers(t *testing.T, s *sqlite.Store, when string) int {
	t.Helper()
	updates := 0
	for u, err := range s.History(t.Context(), "one") {
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			return 0
		}
		require.NoError(t, err, when)
		if updates%2 == 0 {
			require.JSONEq(t, say(fmt.Sprint(updates/2)).String(), u.String(), when)
		}
		updates++
	}
	return 1 + updates/2
}
