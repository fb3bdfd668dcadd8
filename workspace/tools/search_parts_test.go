package tools

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// A file that is searched in parts has the matches that it has as a whole.
func TestSearchInParts(t *testing.T) {
	dir := plant(t, fileTree{})
	ws := openRoots(t, dir)
	long := strings.Repeat("x", 20_000)
	rapid.Check(t, func(t *rapid.T) {
		file := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"needle", "", "é", long,
			"y" + long, long + "needle", long[:9000] + "\r"}), 1, 30).Draw(t, "lines"), "\n") +
			rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
		file = rapid.SampledFrom([]string{"", bom}).Draw(t, "mark") + file
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte(file), 0o600))
		p, err := newPattern(rapid.SampledFrom([]string{"needle", "^x", "^$", "é|^y"}).Draw(t,
			"pattern"), false, false)
		require.NoError(t, err)
		q := query{p, rapid.IntRange(0, 3).Draw(t, "context"), limits{bytes: 1 << 30, line: 1 << 30,
			matches: rapid.IntRange(1, 30).Draw(t, "matches")}.withDefaults()}
		want := linesFound(t, ws, q)
		q.fileSize = 200_000
		if q.context == 0 {
			q.fileSize = 30_000
		}
		require.Equal(t, want, linesFound(t, ws, q))
	})
}

// linesFound returns the lines that a search finds, which must leave out nothing.
func linesFound(t require.TestingT, ws *workspace.Workspace, q query) (lines []line) {
	w := walkOf(ws)
	w.query = &q
	w.each = func(f found) bool {
		lines = append(lines, f.lines...)
		return true
	}
	tally, err := w.run(context.Background())
	require.NoError(t, err)
	require.Zero(t, tally.skipped)
	return lines
}

// Files above the limit are left out, and counted, if they have longer lines or are not UTF-8.
func TestSearchLeavesOutLongLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	dir := plant(t, fileTree{"long": long + "needle\n", "latin": long + "\nneedle \xe9\n",
		"utf16": "\xff\xfe" + long, "binary": "\x00" + long, "fits": long[:60_000] + "\nneedle\n" + long})
	got := do[searchResult](serve(t, openRoots(t, dir), Options{limits: limits{fileSize: 100_000}}),
		"search", args{"pattern": "needle"})
	require.Equal(t, skipped{binary: 1, large: 4}, got.LeftOut)
	require.Empty(t, got.Files)

	got = do[searchResult](serve(t, openRoots(t, dir), Options{limits: limits{fileSize: 210_000}}),
		"search", args{"pattern": "needle", "glob": "fits"})
	require.Empty(t, got.LeftOut)
	require.Equal(t, 1, got.Matches)
}
