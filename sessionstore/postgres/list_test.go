package postgres_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/workspace"
)

// Lists and names are found by indexes, which row-level security must not prevent.
//
// Clause S7.
func TestFewRowsAreRead(t *testing.T) {
	address := server.Address(t)
	first := open(t, address)
	for i := range 50 {
		_, err := first.Create(t.Context(), sessionstore.Session{ID: sessionstore.ID(strconv.Itoa(i)),
			Agent: sessionstore.Agent{Kind: "x"}, Keys: folderKeys(t, i)})
		require.NoError(t, err)
	}
	admin := connectAs(t, address, "admin")
	execute(t, admin, `
		INSERT INTO sessions (owner, id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash,
			real_dirs_hash, title, created, updated, generation, key, strand, turns, listing, meta, name, state_key)
		SELECT '', n, agent, cwd, dirs, cwd, dirs, cwd_hash, dirs_hash, cwd_hash, dirs_hash, '', n, n, n, n, n, 1, 0, '',
			sha256(n::text::bytea), n::text::bytea
		FROM generate_series(100, 20000) AS n JOIN sessions ON id = (n % 50)::text`)
	k := folderKeys(t, 7)
	cwd := &sessionstore.DirFilter{Spelling: k.Roots.Cwd(), Real: k.Real[0]}
	additional := &sessionstore.DirsFilter{Spelling: k.Roots.Additional(), Real: k.Real[1:]}
	// read returns the number of rows and of pages of indexes that were read.
	read := func() (n int) {
		// What admin did itself, such as the rows that it added, is reported first.
		for _, refresh := range []string{"SELECT pg_stat_force_next_flush()", "SELECT pg_stat_clear_snapshot()"} {
			execute(t, admin, refresh)
		}
		err := admin.QueryRow(t.Context(), "SELECT seq_tup_read + sum(idx_blks_read + idx_blks_hit) FROM pg_stat_user_tables t "+
			"JOIN pg_statio_user_indexes USING (relid) WHERE relid = 'sessions'::regclass GROUP BY seq_tup_read").Scan(&n)
		require.NoError(t, err)
		return n
	}
	for _, prepare := range []string{"SELECT 'without statistics'", "ANALYZE sessions"} {
		execute(t, admin, prepare)
		require.Eventually(t, func() bool { return read() >= 0 }, time.Minute, time.Millisecond)
		before := read()
		s, err := postgres.New(postgres.Options{Address: address})
		require.NoError(t, err)
		for _, q := range []sessionstore.Query{{}, {Cwd: cwd}, {Additional: additional}, {Cwd: cwd, Additional: additional}} {
			q.Limit = 10
			for range 8 { // plans change after a few
				page, err := s.List(t.Context(), q)
				require.NoError(t, err)
				require.Len(t, page.Sessions, 10)
				q.Cursor = page.Next
			}
		}
		for _, name := range []string{"700", "no session"} {
			_, _ = s.Named(t.Context(), sessionstore.Agent{Kind: "x"}, name)
			_, _ = s.Get(t.Context(), sessionstore.ID(name))
		}
		require.NoError(t, s.Close()) // its connections then report what they did
		require.Eventually(t, func() bool { return read() > before }, time.Minute, time.Millisecond)
		time.Sleep(time.Second / 10)
		t.Log(prepare, read()-before)
		require.Less(t, read()-before, 5_000, prepare)
	}
}

// folderKeys returns the keys of a session in one of many folders.
func folderKeys(t *testing.T, i int) sessionstore.Keys {
	t.Helper()
	roots, err := workspace.NewRoots(fmt.Sprint("/src/", i), []string{fmt.Sprint("/lib/", i)})
	require.NoError(t, err)
	return sessionstore.Keys{Roots: roots, Real: []workspace.Dir{roots.Cwd(), roots.Additional().At(0)}}
}
