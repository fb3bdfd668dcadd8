package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// walkFiles returns the files that a walk delivers, in order, and the directories that failed after
// "! ".
func walkFiles(tb testing.TB, ws *workspace.Workspace, start string,
	o workspace.WalkOptions) (rels []string) {
	tb.Helper()
	require.NoError(tb, ws.Walk(context.Background(), start, o,
		func(f *workspace.Folder) func() error {
			var found []string
			if f.Err != nil {
				found = append(found, "! "+f.Ref().Rel())
			}
			for _, e := range f.Entries {
				if !e.Type.IsDir() {
					found = append(found, f.RefOf(e).Rel())
				}
			}
			return func() error {
				rels = append(rels, found...)
				return nil
			}
		}))
	return rels
}

func TestWalkOrder(t *testing.T) {
	dir := realDir(t)
	var want []string
	var fill func(rel string, depth int)
	fill = func(rel string, depth int) {
		for i := range 3 {
			name := filepath.Join(rel, fmt.Sprint("f", i))
			write(t, filepath.Join(dir, name), name)
			want = append(want, name)
		}
		for i := range 3 {
			if depth < 4 {
				fill(filepath.Join(rel, fmt.Sprint("d", i)), depth+1)
			}
		}
	}
	fill("", 0)
	ws := open(t, dir)
	for workers := range 6 {
		require.Equal(t, want, walkFiles(t, ws, ".", workspace.WalkOptions{}.WithWorkers(workers)))
	}
}

func TestWalkLeavesOutTemporaryFiles(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, ".acp-agent-DVECPIPAH4ZKBQIAHDAES474WU"), "")
	write(t, filepath.Join(dir, ".acp-agent-notes"), "")
	write(t, filepath.Join(dir, ".acp-agent-directories-and-so-on1"), "")
	for _, leave := range []bool{false, true} {
		require.Equal(t, []string{".acp-agent-directories-and-so-on1", ".acp-agent-notes"},
			walkFiles(t, open(t, dir), ".", workspace.WalkOptions{LeaveIgnored: leave}))
	}
}

func TestWalkLargeDirectory(t *testing.T) {
	dir := realDir(t)
	var want []string
	for i := range 2000 {
		name := fmt.Sprintf("f%04d", i)
		write(t, filepath.Join(dir, name), "")
		want = append(want, name)
	}
	write(t, filepath.Join(dir, "a/below"), "")
	ws := open(t, dir)
	require.Equal(t, append(want, "a/below"),
		walkFiles(t, ws, ".", workspace.WalkOptions{}.WithWorkers(4)))
}

func TestWalkLeavesOutSystemDirectories(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("no /proc here")
	}
	visit := func(ws *workspace.Workspace, start string) (dirs, system []string) {
		o := workspace.WalkOptions{MaxDepth: 1}
		require.NoError(t, ws.Walk(t.Context(), start, o, func(f *workspace.Folder) func() error {
			return func() error {
				dirs = append(dirs, f.Ref().Real())
				system = append(system, f.System...)
				return nil
			}
		}))
		return dirs, system
	}
	dirs, system := visit(open(t, "/"), "/")
	require.Contains(t, dirs, "/usr")
	require.NotContains(t, dirs, "/proc")
	require.Subset(t, system, []string{"dev", "proc"})
	dirs, system = visit(open(t, "/"), "/proc/sys")
	require.Equal(t, "/proc/sys", dirs[0], "what is named is visited")
	require.Greater(t, len(dirs), 1)
	require.Empty(t, system)

	below := realDir(t)
	write(t, filepath.Join(below, "proc", "a"), "")
	dirs, _ = visit(open(t, below), ".")
	require.Contains(t, dirs, filepath.Join(below, "proc"))
}

func TestWalkIgnored(t *testing.T) {
	dir := realDir(t)
	for path, text := range map[string]string{
		".git/info/exclude": "local\n", ".git/config": "", "local": "", "kept": "",
		".gitignore": "*.o\n/build/\n!keep.o\n", "x.o": "", "keep.o": "", "build/x": "", "build/deep/y.o": "",
		"src/build/x": "", "src/.gitignore": "!y.o\nsecret\n", "src/y.o": "", "src/x.o": "", "src/secret/z": "",
		"nested/.git/HEAD": "", "nested/x.o": "", "nested/.gitignore": "x\n", "nested/x": "",
	} {
		write(t, filepath.Join(dir, path), text)
	}
	ws := open(t, dir)
	git := workspace.WalkOptions{LeaveIgnored: true}
	require.Equal(t, []string{
		".gitignore", "keep.o", "kept", "nested/.gitignore", "nested/x.o", "src/.gitignore", "src/y.o", "src/build/x",
	}, walkFiles(t, ws, ".", git))
	require.Equal(t, []string{"src/.gitignore", "src/y.o", "src/build/x"},
		walkFiles(t, ws, "src", git), "the rules above count")
	require.Equal(t, []string{"build/x", "build/deep/y.o"}, walkFiles(t, ws, "build", git),
		"a walk may start in an ignored directory")
	require.Contains(t, walkFiles(t, ws, ".", workspace.WalkOptions{}), ".git/config")
}

// The rules above a root that is a package of a larger repository count, as they do for git.
func TestWalkIgnoredInAPackage(t *testing.T) {
	top := realDir(t)
	for path, text := range map[string]string{
		".git/info/exclude": "local\n", ".git/config": "", ".gitignore": "node_modules/\n*.o\n/packages/a/gen\n",
		"packages/.gitignore": "!keep.o\nold/\n", "packages/a/.gitignore": "*.log\n", "packages/a/main.js": "",
		"packages/a/node_modules/x/index.js": "", "packages/a/x.o": "", "packages/a/keep.o": "",
		"packages/a/gen/y": "", "packages/a/src/gen/y": "", "packages/a/local": "", "packages/a/x.log": "",
		"packages/old/x.js": "", "packages/old/x.o": "", "packages/own/.git/HEAD": "", "packages/own/x.o": "",
	} {
		write(t, filepath.Join(top, path), text)
	}
	git := workspace.WalkOptions{LeaveIgnored: true}
	found := func(o workspace.Options, root, start string) []string {
		return walkFiles(t, openWith(t, o, filepath.Join(top, root)), start, git)
	}
	a := []string{".gitignore", "keep.o", "main.js", "src/gen/y"}
	require.Equal(t, a, found(workspace.Options{}, "packages/a", "."))
	require.Equal(t, []string{"src/gen/y"}, found(workspace.Options{}, "packages/a", "src"))
	require.Equal(t, []string{"x.js", "x.o"}, found(workspace.Options{}, "packages/old", "."),
		"a root may be an ignored directory")
	require.Equal(t, []string{"x.o"}, found(workspace.Options{}, "packages/own", "."))
	dir, err := workspace.ParseDir(filepath.Join(top, "packages/a"))
	require.NoError(t, err)
	require.Contains(t, found(workspace.Options{Policy: workspace.Policy{Allow: []workspace.Dir{dir}}},
		"packages/a", "."), "x.o", "nothing outside the allowed directories is read")
}

func TestWalkStops(t *testing.T) {
	dir := realDir(t)
	for i := range 200 {
		write(t, filepath.Join(dir, fmt.Sprintf("d%03d/f", i)), "")
	}
	ws := open(t, dir)
	before := openFiles(t)
	broken := errors.New("broken")
	for name, c := range map[string]struct{ with, want error }{
		"stopped": {fs.SkipAll, nil},
		"failed":  {broken, broken},
	} {
		t.Run(name, func(t *testing.T) {
			delivered := 0
			err := ws.Walk(t.Context(), ".", workspace.WalkOptions{}.WithWorkers(4),
				func(*workspace.Folder) func() error {
					return func() error {
						if delivered++; delivered == 7 {
							return c.with
						}
						return nil
					}
				})
			require.Equal(t, c.want, err)
			require.Equal(t, 7, delivered)
		})
	}
	t.Run("its context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var looks atomic.Int32
		err := ws.Walk(ctx, ".", workspace.WalkOptions{}.WithWorkers(4),
			func(*workspace.Folder) func() error {
				if looks.Add(1) == 5 {
					cancel(broken)
					<-ctx.Done()
				}
				return nil
			})
		require.ErrorIs(t, err, broken)
	})
	require.Equal(t, before, openFiles(t), "nothing stays open")
}

func TestWalkSlowFirst(t *testing.T) {
	dir := realDir(t)
	for i := range 300 {
		write(t, filepath.Join(dir, fmt.Sprintf("d%03d/e/f", i)), "")
	}
	ws := open(t, dir)
	var (
		others sync.WaitGroup
		looks  atomic.Int32
		order  []string
	)
	others.Add(100)
	require.NoError(t, ws.Walk(t.Context(), ".", workspace.WalkOptions{}.WithWorkers(3),
		func(f *workspace.Folder) func() error {
			rel := f.Ref().Rel()
			if rel == "d000" {
				others.Wait() // others go on, up to their bound
			} else if looks.Add(1) <= 100 {
				others.Done()
			}
			return func() error {
				order = append(order, rel)
				return nil
			}
		}))
	require.Len(t, order, 601)
	require.True(t, slices.IsSorted(order))
}

func TestWalkMaxDepth(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "1/2/3/f"), "")
	write(t, filepath.Join(dir, "1/f"), "")
	ws := open(t, dir)
	require.Equal(t, []string{"1/f", "! 1/2/3"},
		walkFiles(t, ws, ".", workspace.WalkOptions{MaxDepth: 2}))
}

// Clause C3.
func TestWalkDoesNotFollowLinks(t *testing.T) {
	g := newGrounds(t)
	link(t, "d", filepath.Join(g.a, "in"))
	link(t, "..", filepath.Join(g.a, "d/up"))
	link(t, g.out, filepath.Join(g.a, "out"))
	link(t, g.b, filepath.Join(g.a, "across"))
	for _, leave := range []bool{false, true} {
		require.Equal(t, []string{"across", "f", "in", "out", "d/up", "d/e/f"},
			walkFiles(t, g.ws, ".", workspace.WalkOptions{LeaveIgnored: leave, MaxDepth: 4}))
	}
	require.Equal(t, []string{"d/up", "d/e/f"}, walkFiles(t, g.ws, "in", workspace.WalkOptions{}),
		"where it starts is a path like any")
}

// A panic in a callback reaches the caller of Walk, whichever worker it happened on.
//
// Clause W8.
func TestPanicInWalk(t *testing.T) {
	top := realDir(t)
	for _, dir := range []string{"a/b", "c", "d/e/f"} {
		mkdir(t, filepath.Join(top, dir))
	}
	w := open(t, top)
	for _, workers := range []int{1, 4} {
		for name, look := range map[string]func(*workspace.Folder) func() error{
			"look":    func(*workspace.Folder) func() error { panic("in look") },
			"deliver": func(*workspace.Folder) func() error { return func() error { panic("in deliver") } },
			"deep": func(f *workspace.Folder) func() error {
				if f.Ref().Rel() == "d/e" {
					panic("in deep")
				}
				return nil
			},
		} {
			err := recovered(func() {
				_ = w.Walk(t.Context(), ".", workspace.WalkOptions{}.WithWorkers(workers), look)
			})
			require.Contains(t, err, "in "+name)
		}
	}
	require.NoError(t, w.Walk(t.Context(), ".", workspace.WalkOptions{},
		func(*workspace.Folder) func() error { return nil }))
}

func recovered(do func()) (text string) {
	defer func() {
		if value := recover(); value != nil {
			text, _ = value.(string)
		}
	}()
	do()
	return ""
}

// Parsed rules take many times the memory of their file.
func TestWalkReadsLimitedRules(t *testing.T) {
	dir := realDir(t)
	rules := "x\n" + strings.Repeat("#", 1<<20-2)
	for name := range strings.SplitSeq("abcde", "") {
		write(t, filepath.Join(dir, name, ".gitignore"), rules)
		write(t, filepath.Join(dir, name, "x"), "")
	}
	write(t, filepath.Join(dir, "large", ".gitignore"), rules+"#")
	write(t, filepath.Join(dir, "large", "x"), "")
	found := walkFiles(t, open(t, dir), ".",
		workspace.WalkOptions{LeaveIgnored: true}.WithWorkers(1))
	found = slices.DeleteFunc(found, func(rel string) bool { return filepath.Base(rel) != "x" })
	require.Equal(t, []string{"e/x", "large/x"}, found)
}
