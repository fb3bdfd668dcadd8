package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// walkOf returns a walk of all files of a workspace.
func walkOf(ws *workspace.Workspace) walk { return walk{ws: ws} }

// rels returns the files that a walk visits, each as "root index:path".
func rels(tb testing.TB, w walk) (all []string, out walked) {
	tb.Helper()
	w.each = func(f found) *truncation {
		all = append(all, fmt.Sprint(f.ref().Root().Index, ":", f.ref().Rel()))
		return nil
	}
	out = runWalk(tb, w)
	return all, out
}

// runWalk runs a walk, which must succeed.
func runWalk(tb testing.TB, w walk) walked {
	tb.Helper()
	out, err := w.run(tb.Context())
	require.NoError(tb, err)
	return out
}

// Clause A20.
func TestWalkVisitsRootsInOrder(t *testing.T) {
	a := plant(t, fileTree{"b/2": "", "1": "", "a/3": "", "z": ""})
	b := plant(t, fileTree{"1": "", "0/5": ""})
	for range 10 {
		got, w := rels(t, walkOf(openRoots(t, b, a)))
		require.Equal(t, []string{"0:1", "0:0/5", "1:1", "1:z", "1:a/3", "1:b/2"}, got)
		require.Equal(t, 6, w.Visited)
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
		w := walkOf(ws)
		w.path, w.leaveIgnored = path, true
		got, _ := rels(t, w)
		require.Equal(t, want, got, path)
	}
	one, err := newGlob("y/*")
	require.NoError(t, err)
	w := walkOf(ws)
	w.path, w.only, w.leaveIgnored = "x", one, true
	got, _ := rels(t, w)
	require.Equal(t, []string{"0:x/y/a"}, got, "a glob is compared below the path")

	w.path = "missing"
	_, err = w.run(t.Context())
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
			w := walkOf(openRoots(t, c.roots[0], c.roots[1:]...))
			w.leaveIgnored = true
			got, out := rels(t, w)
			require.Equal(t, c.want, got)
			require.Equal(t, len(c.want), out.Visited)
			require.Empty(t, out.Unfinished)
		})
	}
	t.Run("the owner is the deepest root", func(t *testing.T) {
		var owners []string
		w := walkOf(openRoots(t, src, lib))
		w.path, w.each = src, func(f found) *truncation {
			owners = append(owners, f.ref().Root().Dir.String())
			return nil
		}
		runWalk(t, w)
		require.Equal(t, []string{src, src, src, lib}, owners)
	})
}

func TestWalkLimits(t *testing.T) {
	w := walkOf(openRoots(t, plant(t, fileTree{"a": ""}), plant(t, fileTree{"b": ""})))
	w.each = func(f found) *truncation {
		if f.ref().Root().Index == 0 {
			return nil
		}
		return new(truncation)
	}
	require.Equal(t, w.ws.Opened()[1:], runWalk(t, w).Unfinished)
	deep := strings.Repeat("d/", maxDepth)
	got, out := rels(t, walkOf(openRoots(t, plant(t, fileTree{deep + "d/f": "", deep + "g": ""}))))
	require.Equal(t, []string{"0:" + deep + "g"}, got)
	require.Equal(t, 1, out.LeftOut.unreadable)
	require.Contains(t, filepath.ToSlash(out.LeftOut.first), "/"+deep+"d: ")
}

func TestWalkStops(t *testing.T) {
	files := fileTree{}
	for i := range 300 {
		files[fmt.Sprintf("%03d/f", i)] = "x\n"
	}
	ws := openRoots(t, plant(t, files))
	w := walkOf(ws)
	n := 0
	w.each = func(found) *truncation { n++; return new(truncation) }
	runWalk(t, w)
	require.Equal(t, 1, n)

	broken := errors.New("broken")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.each = func(found) *truncation { cancel(broken); return nil }
	_, err := w.run(ctx)
	require.ErrorIs(t, err, broken)

	w.query = &query{pattern: &pattern{}, limits: limits{}.withDefaults()} // a defect
	require.Panics(t, func() { _, _ = w.run(t.Context()) })
	w.query = nil
	require.NoError(t, ws.Close())
	_, err = w.run(t.Context())
	require.ErrorIs(t, err, workspace.ErrClosed)
}

func TestWalkCountsSkippedFiles(t *testing.T) {
	cwd := plant(t, fileTree{
		"nul": "needle\x00", "latin": "needle \xe9\n", "control": "needle \xe9\x01\n", "elsewhere": "\xe9\n", "large": strings.Repeat("needle ", 20_000), "fits": strings.Repeat("n", 94) + "needle",
	})
	p, err := newPattern("needle", true, false)
	require.NoError(t, err)
	var names []string
	w := walkOf(openRoots(t, cwd))
	w.query = &query{pattern: p, limits: limits{fileSize: 50}.withDefaults()}
	w.each = func(f found) *truncation {
		names = append(names, f.ref().Rel())
		return nil
	}
	out := runWalk(t, w)
	require.Equal(t, []string{"fits", "latin"}, names)
	require.Equal(t, 6, out.Visited)
	require.Equal(t, skipped{binary: 2, large: 1}, out.LeftOut)
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
		w := walkOf(ws)
		w.query = &query{p, around, limits{}.withDefaults()}
		w.each = func(f found) *truncation {
			for _, line := range f.lines {
				got = append(got, fmt.Sprintf("%s:%d:%t:%q", f.ref().Path(), line.number, line.match,
					line.text))
			}
			return nil
		}
		_, err = w.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, naive(t, tops, p, around), got)
	})
}

// naive is a search without any optimisation.
func naive(t *rapid.T, tops []string, p *pattern, around int) (all []string) {
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
					all = append(all, fmt.Sprintf("%s:%d:%t:%q", path, i+1, hit(i),
						bytes.TrimSuffix(line, []byte("\r"))))
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

// hostileCalls are small calls that could hold a core, or allocate much, and their tools.
func hostileCalls() map[string]struct{ tool, arguments string } {
	some := strings.Repeat
	encoded := func(a args) string { return string(encode(a)) }
	deep := some("[", 9000) + `"` + some("x", 50_000) + `"` + some("]", 9000)
	members := args{"path": "a", "offset": 1}
	var globs []string
	for i := range 20_000 {
		members[fmt.Sprint("x", i)] = i
	}
	for i := range 100 {
		globs = append(globs, some("**/*a*b/", 8)+some("{a*,*b}", 8)+some("*a", 100)+fmt.Sprint(i))
	}
	calls := map[string]struct{ tool, arguments string }{
		"digits in any case": {"search",
			encoded(args{"pattern": some("1", 9990), "ignore_case": true})},
		"classes":          {"search", encoded(args{"pattern": some(`\pL`, 3000), "ignore_case": true})},
		"repeated classes": {"search", encoded(args{"pattern": some(`(?:\pL{1000})`, 9)})},
		"groups":           {"search", encoded(args{"pattern": some(`(x?)`, 1600) + "y"})},
		"choices":          {"search", encoded(args{"pattern": some(`x|`, 4900) + "x"})},
		"a deep member": {"edit_file",
			`{"path":"a","edits":[{"old_text":"q","new_text":"y","z":` + deep + `}]}`},
		"a deep argument": {"edit_file", `{"path":"a","old_text":"q","new_text":"y","z":` + deep + `}`},
		"a deep path":     {"edit_file", `{"path":` + deep + `}`},
		"many members":    {"read_file", encoded(members)},
		"globs":           {"find_files", encoded(args{"exclude": globs})},
		"too many globs":  {"find_files", encoded(args{"exclude": append(globs, globs...)})},
		"many paths":      {"read_files", encoded(args{"paths": slices.Repeat(globs, 50)})},
		"many similar lines": {"edit_file", encoded(args{"path": "lines",
			"old_text": some(" x\n", 4990) + "y\n", "new_text": ""})},
		"much to indent": {"edit_file", encoded(args{"path": "lines", "old_text": "  x\n",
			"new_text": some(" x\n", 10_000) + "\tx\n"})},
		"wide indentation": {"edit_file", encoded(args{"path": "wide", "old_text": " x\n",
			"new_text": some(some(" ", 200)+"x\n", 1000)})},
		"growing text": {"edit_file", `{"path":"a","edits":[` +
			some(`{"old_text":"x","new_text":"xxxx","replace_all":true},`, 40) +
			`{"old_text":"q","new_text":""}],"dry_run":true}`},
	}
	return calls
}

// hostileTree is the folder that hostile calls are about.
var hostileTree = fileTree{
	"a": "x\n", "lines": strings.Repeat("x\n", 10_000), "wide": strings.Repeat(" ", 100_000) + "x\n",
	filepath.Join(strings.Split(strings.Repeat("ab ", 50)+strings.Repeat("a", 200), " ")...): "",
}

// callWithin calls a tool, and fails if it allocates much more than its arguments are long.
func (h *host) callWithin(t *testing.T, tool string, arguments json.RawMessage) {
	t.Helper()
	const most = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	result, err := h.set.Call(ctx, tool, arguments)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most+100*len(arguments)))
	require.Less(t, len(result.Text), 200<<10)
	if err != nil && ctx.Err() == nil {
		require.Less(t, len(err.Error()), 50<<10)
	}
}

// A small call neither holds a core nor allocates much: without the limits, some of these run for
// minutes or until the memory is used up.
func TestHostileCallsAreBounded(t *testing.T) {
	h := serve(t, openRoots(t, plant(t, hostileTree)), Options{})
	for name, call := range hostileCalls() {
		t.Run(name, func(t *testing.T) {
			h.callWithin(t, call.tool, json.RawMessage(call.arguments))
		})
	}
}

// FuzzCalls calls any tool with any arguments.
func FuzzCalls(f *testing.F) {
	for _, call := range hostileCalls() {
		f.Add(call.tool, call.arguments)
	}
	f.Fuzz(func(t *testing.T, tool, arguments string) {
		allow := func(context.Context, Change) error { return nil }
		set := New(openRoots(t, plant(t, hostileTree)), Options{Permit: allow})
		h := &host{tb: t, set: set} // compiling the schemas takes long
		h.callWithin(t, tool, json.RawMessage(arguments))
	})
}
