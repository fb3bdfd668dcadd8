package sqlite_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause S10.
func TestDeleteErases(t *testing.T) {
	for journal, sessions := range map[sqlite.Journal]int{sqlite.JournalWAL: 120, sqlite.JournalRollback: 30} {
		t.Run("S10/"+string(journal), func(t *testing.T) {
			s := open(t, sqlite.Options{}.WithJournal(journal))
			leases := createWithSecrets(t, s, sessions)
			gone := map[int]bool{}
			for i := range sessions / 6 {
				gone[i*5] = true
				require.NoError(t, s.Delete(t.Context(), leases[i*5].ID))
			}
			require.NoError(t, s.Close())
			files := contents(t, s.Dir())
			for i := range sessions {
				require.Equal(t, !gone[i], bytes.Contains(files, []byte(secret(i))), secret(i))
			}
			require.Equal(t, "ok", integrity(t, s.Dir()))
		})
	}
}

// Clause S10.
func TestDeleteKeepsSharedSegments(t *testing.T) {
	s := open(t, sqlite.Options{})
	lease := create(t, s, "source")
	require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("SHARED")}))
	_, err := s.Fork(t.Context(), "source", sessionstore.NewSession{ID: "fork", Keys: rooted(t, "app")})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("BEHIND THE FORK")}))
	require.NoError(t, s.Delete(t.Context(), "source"))
	require.NoError(t, s.Close())
	require.Contains(t, string(contents(t, s.Dir())), "SHARED")
	require.NotContains(t, string(contents(t, s.Dir())), "BEHIND THE FORK")

	s = open(t, sqlite.Options{Dir: s.Dir()})
	require.NoError(t, s.Delete(t.Context(), "fork"))
	require.NoError(t, s.Close())
	require.NotContains(t, string(contents(t, s.Dir())), "SHARED")
}

// Clause S10.
func TestDeleteErasesDraftsAndStateKeys(t *testing.T) {
	s := open(t, sqlite.Options{})
	lease := create(t, s, "one")
	create(t, s, "two")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "NAME OF THE AGENT'S"))
	draft, err := s.NewDraft(t.Context(), "one")
	require.NoError(t, err)
	require.NoError(t, draft.Append(t.Context(), []sessionstore.Update{say("REPLAYED")}))
	require.NoError(t, s.Delete(t.Context(), "one"))
	require.NoError(t, s.Close())
	require.NotContains(t, string(contents(t, s.Dir())), "REPLAYED")
	require.NotContains(t, string(contents(t, s.Dir())), "NAME OF")
	require.Equal(t, "ok", integrity(t, s.Dir()))
}

func secret(i int) string { return fmt.Sprintf("SECRET<%04d>", i) }

// createWithSecrets creates sessions that contain their secret in every field.
func createWithSecrets(t *testing.T, s *sqlite.Store, sessions int) []sessionstore.Lease {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	leases := make([]sessionstore.Lease, sessions)
	for i := range leases {
		lease, err := s.Create(t.Context(), sessionstore.NewSession{
			ID: sessionstore.ID("id " + secret(i)), Title: "title " + secret(i), State: []byte("state " + secret(i)),
			Agent: sessionstore.Agent{Kind: "explore"}, Keys: rooted(t, "app", "root "+secret(i)),
		})
		require.NoError(t, err)
		leases[i] = lease
	}
	for range 3 * sessions {
		i := random.IntN(sessions)
		words := say(secret(i) + strings.Repeat("x", random.IntN(3000)) + secret(i))
		begin(t, s, leases[i], words)
		require.NoError(t, s.Append(t.Context(), leases[i], []sessionstore.Update{
			words, parse(`{"update":{"sessionUpdate":"current_mode_update","currentModeId":"` + secret(i) + `"}}`),
		}))
		require.NoError(t, s.SetTitle(t.Context(), leases[i], strings.Repeat("t", random.IntN(90))+secret(i)))
	}
	return leases
}

// With so many sessions SQLite moves rows between pages and leaves copies behind, which must be
// erased too.
//
// Clause S10.
func TestPruneErasesMovedRows(t *testing.T) {
	const sessions, kept = 600, 7
	s := open(t, sqlite.Options{}.WithEraseDelay(time.Millisecond))
	order := rand.New(rand.NewPCG(7, 8)).Perm(sessions)
	for _, i := range order {
		lease, err := s.Create(t.Context(), sessionstore.NewSession{
			ID: sessionstore.ID(secret(i)), Agent: sessionstore.Agent{Kind: "explore"}, Keys: rooted(t, "app", secret(i)),
		})
		require.NoError(t, err)
		if i%kept == 0 {
			require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say("used")}))
		}
	}
	n, err := s.Prune(t.Context(), sessionstore.PruneQuery{UnusedBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, sessions-(sessions+kept-1)/kept, n)
	left := func() (found []string) {
		files, err := os.ReadFile(filepath.Join(s.Dir(), "sessions.db"))
		require.NoError(t, err)
		for i := range sessions {
			if i%kept != 0 && bytes.Contains(files, []byte(secret(i))) {
				found = append(found, secret(i))
			}
		}
		return found
	}
	require.Eventually(t, s.Erased, time.Minute, 10*time.Millisecond) // Close does not wait so long
	require.NoError(t, s.Close())
	require.Empty(t, left(), fmt.Sprint(len(left()), " of them"))
	require.Equal(t, "ok", integrity(t, s.Dir()))
}

// requireErased checks with another process that the files of an open store contain no secret of a
// session, except the last one.
func requireErased(t *testing.T, dir string, last int) {
	t.Helper()
	files, err := process(t, "dumper", dir, "").Output()
	require.NoError(t, err)
	require.Empty(t, secretsIn(files, last))
	require.True(t, bytes.Contains(files, []byte(secret(last))))
}

// secretsIn returns those of the first secrets that are in files.
func secretsIn(files []byte, secrets int) (found []string) {
	for i := range secrets {
		if bytes.Contains(files, []byte(secret(i))) {
			found = append(found, secret(i))
		}
	}
	return found
}

// Clause S10.
func TestEraseInBackground(t *testing.T) {
	for _, journal := range []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback} {
		t.Run("S10/"+string(journal), func(t *testing.T) {
			const last = 20
			o := sqlite.Options{}.WithJournal(journal).WithEraseDelay(time.Millisecond)
			s := open(t, o)
			leases := createWithSecrets(t, s, last+1)
			for _, lease := range leases[:last] {
				require.NoError(t, s.Delete(t.Context(), lease.ID))
			}
			require.Eventually(t, s.Erased, time.Minute, 10*time.Millisecond)
			requireErased(t, s.Dir(), last)
			lease := leases[last]
			begin(t, s, lease, say("goes on"))
		})
	}
}

// Clause S10.
func TestEraseAfterKill(t *testing.T) {
	for name, finish := range map[string]func(*testing.T, sqlite.Options){
		"the next program that closes the store": func(t *testing.T, o sqlite.Options) {
			s := sqlite.New(o)
			require.Len(t, ids(t, s), 1)
			require.NoError(t, s.Close())
		},
		"the next program that has it open": func(t *testing.T, o sqlite.Options) {
			s := open(t, o.WithEraseDelay(time.Millisecond))
			require.Len(t, ids(t, s), 1)
			require.Eventually(t, s.Erased, time.Minute, 10*time.Millisecond)
		},
	} {
		t.Run("S10/"+name, func(t *testing.T) {
			const last = 40
			o := sqlite.Options{Dir: t.TempDir()}
			s := sqlite.New(o)
			createWithSecrets(t, s, last+1)
			require.NoError(t, s.Close())
			cmd := process(t, "deleter", o.Dir, fmt.Sprint("id ", secret(last)))
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			require.True(t, bufio.NewScanner(out).Scan(), "all are deleted")
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait(), "it was killed")
			require.NotEmpty(t, secretsIn(contents(t, o.Dir), last), "there was no time to erase")
			finish(t, o)
			requireErased(t, o.Dir, last)
		})
	}
}

// commits returns the numbers of pages that the recorded transactions wrote to the log.
func commits(ops []fileOp) (pages []int) {
	const fileHeader, frameHeader, page = 32, 24, 4096
	n := 0
	for _, op := range ops {
		if op.kind != opWrite || len(op.data) != frameHeader ||
			(op.at-fileHeader)%(frameHeader+page) != 0 {
			continue
		}
		n++
		if binary.BigEndian.Uint32(op.data[4:]) != 0 { // the last one of a transaction
			pages = append(pages, n)
			n = 0
		}
	}
	return pages
}

// Whatever is deleted, each transaction writes few pages, so it holds the write lock for a short
// time.
//
// Clause S10.
func TestDeleteInSmallPieces(t *testing.T) {
	large := strings.Repeat("LARGE", 200_000)
	execute := func(t *testing.T, s *sqlite.Store, statement string) {
		db, err := sql.Open("sqlite", filepath.Join(s.Dir(), "sessions.db"))
		require.NoError(t, err)
		_, err = db.Exec(statement)
		require.NoError(t, errors.Join(err, db.Close()))
	}
	deleteOne := func(t *testing.T, s *sqlite.Store) {
		require.NoError(t, s.Delete(t.Context(), "one"))
	}
	for name, c := range map[string]struct {
		prepare, do func(*testing.T, *sqlite.Store)
	}{
		"a large update": {func(t *testing.T, s *sqlite.Store) {
			require.NoError(t, s.Append(t.Context(), create(t, s, "one"), []sessionstore.Update{say(large)}))
		}, deleteOne},
		"a large state": {func(t *testing.T, s *sqlite.Store) {
			require.NoError(t, s.Append(t.Context(), create(t, s, "one"), []sessionstore.Update{
				parse(`{"update":{"sessionUpdate":"current_mode_update","currentModeId":"` + large + `"}}`),
			}))
		}, deleteOne},
		"many segments": {func(t *testing.T, s *sqlite.Store) {
			lease := create(t, s, "one")
			for range 30 {
				require.NoError(t, s.Append(t.Context(), lease, []sessionstore.Update{say(large[:60_000])}))
			}
		}, deleteOne},
		"old tombstones": {func(t *testing.T, s *sqlite.Store) {
			lease := create(t, s, "one")
			require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "name"))
			execute(t, s, `
				WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
				INSERT INTO tombstones SELECT key, randomblob(32), i FROM n, agents`)
		}, deleteOne},
		"pruned sessions": {func(t *testing.T, s *sqlite.Store) {
			createWithSecrets(t, s, 30)
		}, func(t *testing.T, s *sqlite.Store) {
			n, err := s.Prune(t.Context(), sessionstore.PruneQuery{Before: time.Now().Add(time.Hour)})
			require.NoError(t, err)
			require.Equal(t, 30, n)
		}},
	} {
		t.Run("S10/"+name, func(t *testing.T) {
			dir := dirtest.New(t)
			s := sqlite.New(sqlite.Options{Dir: dir})
			c.prepare(t, s)
			require.NoError(t, s.Close())
			r, stop := record(t, dir)
			defer stop()
			s = sqlite.New(sqlite.Options{Dir: dir})
			c.do(t, s)
			require.NoError(t, s.Close())
			require.LessOrEqual(t, slices.Max(commits(r.recorded())), 40, "pages")
			files := contents(t, dir)
			require.NotContains(t, string(files), large[:40])
			require.NotContains(t, string(files), "SECRET")
			require.Less(t, len(files), 1<<20, "the space is given back")
			require.Equal(t, "ok", integrity(t, dir))
		})
	}
}
