package sqlite_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// A store remembers the last 10,000 deleted sessions of an agent.
//
// Clause A28.
func TestOldestDeletedSessionsAreForgotten(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	s := open(t, sqlite.Options{Now: func() time.Time { return now }})
	names := make([][]byte, 10_003)
	for i := range names {
		names[i] = fmt.Appendf(nil, "%032d", i)
	}
	agent := sessionstore.Agent{Kind: "explore"}
	require.NoError(t, s.RestoreDeleted(t.Context(), agent, names[:5]))
	now = now.Add(time.Second)
	require.NoError(t, s.RestoreDeleted(t.Context(), agent, names[5:]))
	lease := storetest.Create(t, s, "one")
	require.NoError(t, s.SaveState(t.Context(), lease, []byte("x"), "a"))
	require.NoError(t, s.Delete(t.Context(), "one"))
	all, err := s.Deleted(t.Context())
	require.NoError(t, err)
	require.Len(t, all[agent], 10_000)
	require.Equal(t, names[5:], all[agent][1:9999])
}

func secret(i int) string { return fmt.Sprintf("SECRET<%04d>", i) }

// createWithSecrets creates sessions that contain their secret in every field.
func createWithSecrets(t *testing.T, s *sqlite.Store, sessions int) []sessionstore.Lease {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	leases := make([]sessionstore.Lease, sessions)
	for i := range leases {
		lease, err := s.Create(t.Context(), sessionstore.Session{
			ID: sessionstore.ID("id " + secret(i)), Title: "title " + secret(i), State: []byte("state " + secret(i)),
			Agent: sessionstore.Agent{Kind: "explore"},
			Keys:  storetest.Keys(t, "app", "root "+secret(i)),
		})
		require.NoError(t, err)
		leases[i] = lease
	}
	for range 3 * sessions {
		i := random.IntN(sessions)
		words := storetest.Said(secret(i) + strings.Repeat("x", random.IntN(3000)) + secret(i))
		storetest.Begin(t, s, leases[i], sessionstore.Turn{Prompt: words})
		words = append(words, sessionstore.StoredUpdate(fmt.Appendf(nil,
			`{"update":{"sessionUpdate":"current_mode_update","currentModeId":%q}}`, secret(i))))
		require.NoError(t, s.Append(t.Context(), leases[i], words))
		require.NoError(t, s.SetTitle(t.Context(), leases[i], strings.Repeat("t", random.IntN(90))+secret(i)))
	}
	return leases
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
func TestEraseAfterKill(t *testing.T) {
	for name, finish := range map[string]func(*testing.T, sqlite.Options){
		"the next program that closes the store": func(t *testing.T, o sqlite.Options) {
			s := sqlite.New(o)
			require.Len(t, ids(t, s), 1)
			require.NoError(t, s.Close())
		},
		"the next program that has it open": func(t *testing.T, o sqlite.Options) {
			s := open(t, o.WithPurgeDelay(time.Millisecond))
			require.Len(t, ids(t, s), 1)
			require.Eventually(t, s.Purged, time.Minute, 10*time.Millisecond)
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

// A delete takes as long whatever the session has, and what it leaves is purged in pieces between
// which others write.
//
// Clause S10.
func TestPurgingLetsOthersWrite(t *testing.T) {
	s := open(t, sqlite.Options{}.WithPurgeDelay(time.Millisecond))
	large := storetest.Create(t, s, "large")
	for range 400 {
		require.NoError(t,
			s.Append(t.Context(), large, storetest.Said(strings.Repeat("x", 60_000))))
	}
	other := open(t, sqlite.Options{Dir: s.Dir()})
	lease := storetest.Create(t, other, "other")
	require.NoError(t, s.Delete(t.Context(), "large"))
	writes := 0
	for ; !s.Purged(); writes++ {
		require.NoError(t, other.Append(t.Context(), lease, storetest.Said("x")))
	}
	require.Greater(t, writes, 5)
}

// Clause S10.
func TestRetentionOfUnusedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, sqlite.New(sqlite.Options{Dir: dir, Retention: time.Hour}).Close())
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}
