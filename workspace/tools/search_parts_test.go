package tools

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
		o := SearchOptions{Query: p, Context: rapid.IntRange(0, 3).Draw(t, "context"),
			MaxHits: rapid.IntRange(0, 4).Draw(t, "hits")}
		want := linesFound(t, Walk{Workspace: ws}, o)
		o.MaxFileSize = 200_000
		if o.Context == 0 {
			o.MaxFileSize = 30_000
		}
		require.Equal(t, want, linesFound(t, Walk{Workspace: ws}, o))
	})
}

// linesFound returns the lines that a search finds, which must leave out nothing.
func linesFound(t require.TestingT, w Walk, o SearchOptions) (lines []Line) {
	tally, err := w.Run(context.Background(), &o, func(f Found) error {
		lines = append(lines, f.Lines...)
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, tally.Skipped)
	return lines
}

// Files above the limit are left out, and counted, if they have longer lines or are not UTF-8.
func TestSearchLeavesOutLongLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	dir := plant(t, fileTree{"long": long + "needle\n", "latin": long + "\nneedle \xe9\n",
		"utf16": "\xff\xfe" + long, "binary": "\x00" + long, "fits": long[:60_000] + "\nneedle\n" + long})
	got := do[searchResult](serve(t, openRoots(t, dir), Options{limits: limits{fileSize: 100_000}}),
		"search", args{"pattern": "needle"})
	require.Equal(t, Skipped{Binary: 1, Large: 4}, got.LeftOut)
	require.Empty(t, got.Files)

	got = do[searchResult](serve(t, openRoots(t, dir), Options{limits: limits{fileSize: 210_000}}),
		"search", args{"pattern": "needle", "glob": "fits"})
	require.Empty(t, got.LeftOut)
	require.Equal(t, 1, got.Matches)
}
