package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// A large store has sessions in 500 projects, half of them with one of 5 lists of additional roots; every tenth
// was opened through a link.
const (
	projects = 500
	lists    = 5
)

func absolute(format string, args ...any) string {
	return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) + filepath.FromSlash(fmt.Sprintf(format, args...))
}

func project(i int) string { return absolute("home/dev/src/project-%d", i%projects) }

func additional(i int) []string {
	if i%2 == 0 {
		return nil
	}
	return []string{absolute("home/dev/src/lib-%d", i/2%lists), absolute("home/dev/docs-%d", i/2%lists)}
}

func manyKeys(t testing.TB, i int) sessionstore.Keys {
	roots, err := workspace.NewRoots(project(i), additional(i))
	require.NoError(t, err)
	k := sessionstore.Keys{Roots: roots}
	for n, dir := range roots.All() {
		if i%10 == 0 {
			dir, err = workspace.ParseDir(absolute("mnt/project-%d/%d", i%projects, n))
			require.NoError(t, err)
		}
		k.Real = append(k.Real, dir)
	}
	return k
}

// manySessions is the size of a large store.
const manySessions = 100_000

// large returns a store with n sessions of one agent, written in one go: the indexes are made afterwards.
func large(t testing.TB, n int) *Store {
	t.Helper()
	s := New(Options{Dir: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		exec := func(text string, args ...any) {
			_, err := tx.ExecContext(ctx, text, args...)
			require.NoError(t, err)
		}
		exec("INSERT INTO agents VALUES (1, 'explore', '')")
		indexes := dropIndexes(ctx, t, tx)
		insert, err := tx.PrepareContext(ctx, `
			INSERT INTO sessions (cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
				id, updated, strand, agent, title, created, generation, turns, open, last)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'a title of some words', 1700000000000, 1, 0, 0, 0)`)
		require.NoError(t, err)
		defer insert.Close()
		for i := range n {
			id := fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761%(1<<32), i)
			values := append(columnsOf(manyKeys(t, i)).values(), id, 1_700_000_000_000+i/3, i+1)
			_, err := insert.ExecContext(ctx, values...)
			require.NoError(t, err)
		}
		exec("UPDATE meta SET generations = ?", n)
		for _, index := range indexes {
			exec(index)
		}
		return nil
	}))
	return s
}

// dropIndexes returns how to make them again.
func dropIndexes(ctx context.Context, t testing.TB, tx *sql.Tx) (made []string) {
	t.Helper()
	rows, err := tx.QueryContext(ctx, "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND name LIKE 'by_%'")
	require.NoError(t, err)
	var names []string
	for rows.Next() {
		var name, text string
		require.NoError(t, rows.Scan(&name, &text))
		names, made = append(names, name), append(made, text)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	for _, name := range names {
		_, err := tx.ExecContext(ctx, "DROP INDEX "+name)
		require.NoError(t, err)
	}
	return made
}

// manyQueries are all combinations of filters.
func manyQueries(t testing.TB) map[string]sessionstore.Query {
	k := manyKeys(t, 1)
	cwd := &sessionstore.DirFilter{Spelling: k.Roots.Cwd(), Real: k.Real[0]}
	list := &sessionstore.DirsFilter{Spelling: k.Roots.Additional(), Real: k.Real[1:]}
	agent := sessionstore.Agent{Kind: "explore"}
	return map[string]sessionstore.Query{
		"none": {Agent: agent}, "cwd": {Agent: agent, Cwd: cwd}, "roots": {Agent: agent, Additional: list},
		"cwd and roots": {Agent: agent, Cwd: cwd, Additional: list}, "no roots": {Agent: agent, Additional: &sessionstore.DirsFilter{}},
		"any agent": {}, "any agent, cwd and roots": {Cwd: cwd, Additional: list},
	}
}
