package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// rels returns the files that a walk visits, each as "root index:path".
func rels(tb testing.TB, w Walk) (all []string, tally Tally) {
	tb.Helper()
	tally, err := w.Run(tb.Context(), nil, func(f Found) error {
		all = append(all, fmt.Sprint(f.Ref().Root().Index, ":", f.Ref().Rel()))
		return nil
	})
	require.NoError(tb, err)
	return all, tally
}

// Clause A20.
func TestWalkVisitsRootsInOrder(t *testing.T) {
	a := plant(t, fileTree{"b/2": "", "1": "", "a/3": "", "z": ""})
	b := plant(t, fileTree{"1": "", "0/5": ""})
	for range 10 {
		got, tally := rels(t, Walk{Workspace: openRoots(t, b, a)})
		require.Equal(t, []string{"0:1", "0:0/5", "1:1", "1:z", "1:a/3", "1:b/2"}, got)
		require.Equal(t, 6, tally.Files)
	}
}

func TestWalkPath(t *testing.T) {
	a := plant(t, fileTree{
		".gitignore": "*.log\n/gen/\n", "x/.gitignore": "/no/\n", "x/y/a": "", "x/y/b.log": "", "x/no/c": "", "x/no/d.log": "", "gen/e": "", "gen/f/g": "", "top": "",
	})
	b := plant(t, fileTree{"sub/k": ""})
	symlink(t, filepath.Join(b, "sub"), filepath.Join(a, "link"))
	ws := openRoots(t, a, b)
	for path, want := range map[string][]string{
		"x":                      {"0:x/.gitignore", "0:x/y/a"},
		"x/y":                    {"0:x/y/a"},
		"./x/../x//y/.":          {"0:x/y/a"},
		"x/no":                   {"0:x/no/c", "0:x/no/d.log"},
		"gen":                    {"0:gen/e", "0:gen/f/g"},
		"gen/f":                  {"0:gen/f/g"},
		"x/y/b.log":              {"0:x/y/b.log"},
		"top":                    {"0:top"},
		"link":                   {"1:sub/k"},
		"link/k":                 {"1:sub/k"},
		b:                        {"1:sub/k"},
		filepath.Join(b, "."):    {"1:sub/k"},
		"../" + filepath.Base(b): {"1:sub/k"},
	} {
		got, _ := rels(t, Walk{Workspace: ws, Path: path, Ignored: workspace.LeaveIgnored})
		require.Equal(t, want, got, path)
	}
	one, err := NewGlob("y/*")
	require.NoError(t, err)
	got, _ := rels(t, Walk{Workspace: ws, Path: "x", Only: one, Ignored: workspace.LeaveIgnored})
	require.Equal(t, []string{"0:x/y/a"}, got, "a glob is compared below the path")

	_, err = Walk{Workspace: ws, Path: "missing"}.Run(t.Context(), nil, func(Found) error { return nil })
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestWalkOverlappingRoots(t *testing.T) {
	top := plant(t, fileTree{"src/.gitignore": "gen/\n", "src/a": "", "src/lib/b": "",
		"src/gen/c": ""})
	src, lib, gen := filepath.Join(top, "src"), filepath.Join(top, "src/lib"), filepath.Join(top,
		"src/gen")
	symlink(t, lib, filepath.Join(top, "other"))
	for name, c := range map[string]struct {
		roots []string
		want  []string
	}{
		"the outer first": {[]string{src, lib}, []string{"0:.gitignore", "0:a", "1:b"}},
		"the inner first": {[]string{lib, src}, []string{"0:b", "1:.gitignore", "1:a"}},
		"the outer ignores the inner": {[]string{src, gen},
			[]string{"0:.gitignore", "0:a", "0:lib/b", "1:c"}},
		"two spellings of one": {[]string{lib, filepath.Join(top, "other")}, []string{"0:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ws := openRoots(t, c.roots[0], c.roots[1:]...)
			got, tally := rels(t, Walk{Workspace: ws, Ignored: workspace.LeaveIgnored})
			require.Equal(t, c.want, got)
			require.Equal(t, len(c.want), tally.Files)
			require.Equal(t, []Coverage{Complete, Complete}, tally.Roots)
			got, tally = rels(t, Walk{Workspace: ws, Ignored: workspace.LeaveIgnored, MaxFiles: 1})
			require.Equal(t, c.want[0], got[0])
			require.Len(t, got, tally.Files)
			require.LessOrEqual(t, len(got), 2, "one of each root")
		})
	}
	t.Run("the owner is the deepest root", func(t *testing.T) {
		var owners []string
		_, err := Walk{Workspace: openRoots(t, src, lib), Path: src}.Run(t.Context(), nil,
			func(f Found) error {
				owners = append(owners, f.Ref().Root().Dir.String())
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, []string{src, src, src, lib}, owners)
	})
}

func TestWalkLimits(t *testing.T) {
	files := fileTree{}
	for i := range 700 {
		files[fmt.Sprintf("d%d/%04d", i%3, i)] = "x\n"
	}
	for i := range 1200 {
		files[fmt.Sprintf("%04d", i)] = "x\n"
	}
	ws := openRoots(t, plant(t, files))
	all, tally := rels(t, Walk{Workspace: ws})
	require.Len(t, all, 1900)
	require.False(t, tally.Full)
	for _, most := range []int{1, 600, 1200, 1201, 1899, 1900} {
		got, tally := rels(t, Walk{Workspace: ws, MaxFiles: most})
		require.Equal(t, all[:most], got)
		require.Equal(t, most < 1900, tally.Full)
		require.Equal(t, most, tally.Files)
	}
	t.Run("of each root", func(t *testing.T) {
		small := plant(t, fileTree{"a": "", "b": ""})
		ws := openRoots(t, small, plant(t, files), small)
		got, tally := rels(t, Walk{Workspace: ws, MaxFiles: 2})
		require.Equal(t, []string{"0:a", "0:b", "1:0000", "1:0001"}, got)
		require.Equal(t, Tally{Files: 4, Full: true, Roots: []Coverage{Complete, Limited}}, tally)
		tally, err := Walk{Workspace: ws}.Run(t.Context(), nil, func(f Found) error {
			if f.Ref().Root().Index == 1 {
				return fs.SkipAll
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []Coverage{Complete, Stopped}, tally.Roots)
	})
	deep := openRoots(t, plant(t, fileTree{"1/2/3/f": "", "1/g": ""}))
	got, tally := rels(t, Walk{Workspace: deep, maxDepth: 2})
	require.Equal(t, []string{"0:1/g"}, got)
	require.Equal(t, 1, tally.Skipped.Unreadable)
	require.Equal(t, "1/2/3", tally.Skipped.First.At.Rel())
}

func TestWalkStops(t *testing.T) {
	files := fileTree{}
	for i := range 300 {
		files[fmt.Sprintf("%03d/f", i)] = "x\n"
	}
	ws := openRoots(t, plant(t, files))
	s := Walk{Workspace: ws}
	broken := errors.New("broken")
	n := 0
	_, err := s.Run(t.Context(), nil, func(Found) error { n++; return broken })
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, n)
	_, err = s.Run(t.Context(), nil, func(Found) error { return fs.SkipAll })
	require.NoError(t, err)

	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = s.Run(ctx, nil, func(Found) error { cancel(broken); return nil })
	require.ErrorIs(t, err, broken)

	require.Panics(t, func() {
		_, _ = s.Run(t.Context(), &SearchOptions{Query: panicking{}},
			func(Found) error { return nil })
	})
	require.NoError(t, ws.Close())
	_, err = s.Run(t.Context(), nil, func(Found) error { return nil })
	require.ErrorIs(t, err, workspace.ErrClosed)
}

type panicking struct{}

func (panicking) Find(context.Context, []byte, func(Match) bool) error { panic("a defect") }

func TestWalkCountsSkippedFiles(t *testing.T) {
	cwd := plant(t, fileTree{
		"nul": "needle\x00", "latin": "needle \xe9\n", "control": "needle \xe9\x01\n", "elsewhere": "\xe9\n", "large": strings.Repeat("needle ", 20_000), "fits": strings.Repeat("n", 94) + "needle",
	})
	p, err := newPattern("needle", true, false)
	require.NoError(t, err)
	var names []string
	tally, err := Walk{Workspace: openRoots(t, cwd)}.Run(t.Context(), &SearchOptions{Query: p, MaxFileSize: 100}, func(f Found) error {
		names = append(names, f.Ref().Rel())
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"fits", "latin"}, names)
	require.Equal(t, Tally{Files: 6, Roots: []Coverage{Incomplete},
		Skipped: Skipped{Binary: 2, Large: 1}}, tally)
}

// A search finds what reading every file line by line finds.
func TestSearchMatchesANaiveSearch(t *testing.T) {
	home := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d.txt", "é", ".h"})
		text := rapid.Custom(func(t *rapid.T) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "ab", "aab", "b", "needle",
				"NEEDLE x", "é needle", "a\rb"}), 0, 12).Draw(t, "lines")
			return strings.Join(lines, rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t,
				"ending"))
		})
		var tops []string
		for range rapid.IntRange(1, 3).Draw(t, "roots") {
			top, err := os.MkdirTemp(home, "root")
			require.NoError(t, err)
			defer os.RemoveAll(top)
			for range rapid.IntRange(0, 12).Draw(t, "files") {
				path := filepath.Join(append([]string{top},
					rapid.SliceOfN(name, 1, 3).Draw(t, "path")...)...)
				if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
					_ = os.WriteFile(path, []byte(text.Draw(t, "text")), 0o600)
				}
			}
			top, err = filepath.EvalSymlinks(top)
			require.NoError(t, err)
			tops = append(tops, top)
		}
		p, err := newPattern(rapid.SampledFrom([]string{"needle", "a+b", "^$", "b$", "(?i)needle|é",
			"x"}).Draw(t, "pattern"), false, false)
		require.NoError(t, err)
		around := rapid.IntRange(0, 3).Draw(t, "context")

		roots, err := workspace.NewRoots(tops[0], tops[1:])
		require.NoError(t, err)
		ws, err := workspace.Open(t.Context(), roots, workspace.Options{})
		require.NoError(t, err)
		defer ws.Close()
		var got []string
		_, err = Walk{Workspace: ws}.Run(t.Context(), &SearchOptions{Query: p, Context: around},
			func(f Found) error {
				for _, line := range f.Lines {
					got = append(got, fmt.Sprintf("%s:%d:%t:%q", f.Ref().Path(), line.Number, line.Match,
						line.Text))
				}
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, naive(t, tops, p, around), got)
	})
}

// naive is a search without any optimisation.
func naive(t *rapid.T, tops []string, p *Pattern, around int) (all []string) {
	var search func(dir string)
	search = func(dir string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			path := filepath.Join(dir, e.Name())
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
			if len(text) == 0 {
				continue
			}
			hit := func(i int) bool {
				return i >= 0 && i < len(lines) &&
					p.expression.Match(bytes.TrimSuffix(lines[i], []byte("\r")))
			}
			for i, line := range lines {
				near := false
				for d := -around; d <= around; d++ {
					near = near || hit(i+d)
				}
				if near {
					all = append(all, fmt.Sprintf("%s:%d:%t:%q", path, i+1, hit(i), line))
				}
			}
		}
		for _, e := range entries {
			if e.IsDir() {
				search(filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, top := range tops {
		search(top)
	}
	return all
}
