package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

func refusal(t *testing.T, o workspace.Options, cwd string,
	additional ...string) workspace.RootErrors {
	t.Helper()
	_, err := workspace.Open(t.Context(), mustRoots(t, cwd, additional...), o)
	require.Error(t, err)
	return rootErrors(err)
}

func additional(i int, path string, reason workspace.Reason) workspace.RootError {
	return workspace.RootError{Root: 1 + i, Path: path, Reason: reason}
}

// Clause A6.
func TestMissingAndNotDirectories(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "file"), "")
	link(t, "nowhere", filepath.Join(dir, "dangling"))
	link(t, "file", filepath.Join(dir, "to-file"))
	at := func(name string) string { return filepath.Join(dir, name) }
	require.Equal(t, workspace.RootErrors{
		{Path: at("gone"), Reason: workspace.ReasonMissing},
		additional(0, at("file"), workspace.ReasonNotDirectory),
		additional(2, at("dangling"), workspace.ReasonMissing),
		additional(3, at("to-file"), workspace.ReasonNotDirectory),
		additional(4, at("file/below"), workspace.ReasonMissing),
	}, refusal(t, workspace.Options{}, at("gone"), at("file"), dir, at("dangling"), at("to-file"), at("file/below")))
}

// Clause A6.
func TestErrorsPointAtTheInput(t *testing.T) {
	dir := realDir(t)
	gone := filepath.Join(dir, "gone")
	require.Equal(t, workspace.RootErrors{additional(3, gone, workspace.ReasonMissing)},
		refusal(t, workspace.Options{}, dir, dir, dir+"/./", dir, gone, gone+"/"))
}

// Clause A6.
func TestTooManyRoots(t *testing.T) {
	dir := realDir(t)
	var more []string
	for i := range workspace.DefaultMaxRoots {
		more = append(more, mkdir(t, filepath.Join(dir, fmt.Sprint(i))))
	}
	require.Equal(t, workspace.RootErrors{
		{Root: -1, Reason: workspace.ReasonTooMany, Detail: "64"},
	}, refusal(t, workspace.Options{}, dir, more...))
	require.Equal(t, workspace.RootErrors{
		{Root: -1, Reason: workspace.ReasonTooMany, Detail: "2"},
	}, refusal(t, workspace.Options{MaxRoots: 2}, dir, filepath.Join(dir, "gone"), more[0]))
	open(t, dir, more[:workspace.DefaultMaxRoots-1]...)
	openWith(t, workspace.Options{MaxRoots: 1000}, dir, more...)
}

func dirs(t *testing.T, list ...string) (out []workspace.Dir) {
	for _, path := range list {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		out = append(out, dir)
	}
	return out
}

// Clause A6.
func TestPolicyUsesRealPaths(t *testing.T) {
	dir := realDir(t)
	secret, deeper := mkdir(t, filepath.Join(dir, "secret")), mkdir(t,
		filepath.Join(dir, "secret/deeper"))
	fine, twin := mkdir(t, filepath.Join(dir, "fine")), mkdir(t, filepath.Join(dir, "secret-twin"))
	innocent := filepath.Join(dir, "innocent")
	link(t, "secret/deeper", innocent)
	denied := func(i int, path, by string) workspace.RootError {
		return workspace.RootError{Root: 1 + i, Path: path, Reason: workspace.ReasonDenied,
			Detail: by}
	}
	notAllowed := func(i int, path string, o workspace.Options) workspace.RootError {
		e := additional(i, path, workspace.ReasonDenied)
		e.Allowed = o.Policy.Allow
		return e
	}
	t.Run("denied", func(t *testing.T) {
		o := workspace.Options{Policy: workspace.Policy{Deny: dirs(t, secret)}}
		require.Equal(t, workspace.RootErrors{
			denied(0, secret, secret), denied(1, deeper, secret), denied(2, innocent, secret),
		}, refusal(t, o, fine, secret, deeper, innocent, twin))
		openWith(t, o, fine, twin)
	})
	t.Run("denied by a link", func(t *testing.T) {
		o := workspace.Options{Policy: workspace.Policy{Deny: dirs(t, innocent)}}
		require.Equal(t, workspace.RootErrors{denied(0, deeper, innocent)},
			refusal(t, o, fine, deeper))
	})
	t.Run("not allowed", func(t *testing.T) {
		o := workspace.Options{Policy: workspace.Policy{Allow: dirs(t, fine, innocent)}}
		require.Equal(t, workspace.RootErrors{notAllowed(0, secret, o), notAllowed(2, twin, o)},
			refusal(t, o, fine, secret, deeper, twin))
		require.ErrorContains(t, notAllowed(0, secret, o),
			"in none of the folders that you may open: "+fine+", "+innocent)
		openWith(t, o, fine, innocent)
	})
	t.Run("only allowed", func(t *testing.T) {
		o := workspace.Options{Policy: workspace.Policy{Allow: dirs(t, fine), OnlyAllowed: true}}
		missing := filepath.Join(dir, "missing")
		require.Equal(t, workspace.RootErrors{notAllowed(0, innocent, o), notAllowed(1, missing, o)},
			refusal(t, o, fine, innocent, missing), "what exists elsewhere is not told")
		require.Equal(t, workspace.RootErrors{
			additional(0, filepath.Join(fine, "missing"), workspace.ReasonMissing)},
			refusal(t, o, fine, filepath.Join(fine, "missing")))
		openWith(t, o, fine)
		o.Policy.Allow = nil
		require.Len(t, refusal(t, o, fine, dir), 2)
	})
}

// A denied directory need not exist yet, however its path is spelled.
//
// Clause A6.
func TestDeniedBeforeItExists(t *testing.T) {
	g := newGrounds(t)
	link(t, "d/later", filepath.Join(g.a, "relative"))
	link(t, filepath.Join(g.a, "relative"), filepath.Join(g.b, "by-two"))
	link(t, g.b, filepath.Join(g.dir, "b-too"))
	for _, deny := range []string{
		filepath.Join(g.a, "relative"), filepath.Join(g.b, "by-two"), filepath.Join(g.dir,
			"b-too/by-two"),
		g.a + "/d/later/missing/..", g.a + "/relative/x/../missing/..", g.a + "/relative/.",
	} {
		ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, deny)}}, g.a,
			g.b)
		write(t, filepath.Join(g.a, "d/later/key"), "SECRET")
		for _, path := range []string{"relative/key", "d/later/key", "d/later", "../B/by-two/key"} {
			for name, way := range ways {
				var denied *workspace.DeniedError
				require.ErrorAs(t, way(ws, path), &denied, "%s %s, of which %s is denied", name,
					path, deny)
			}
		}
		requireRead(t, ws, "d/e/f", "A/d/e/f", 0, "d/e/f")
		require.NoError(t, os.RemoveAll(filepath.Join(g.a, "d/later")))
	}
}

// Clause A6.
func TestWalkOfDeniedDirectories(t *testing.T) {
	g := newGrounds(t)
	secret, later := filepath.Join(g.a, "secret"), filepath.Join(g.a, "later")
	write(t, filepath.Join(secret, "deep/key"), "SECRET")
	link(t, "secret/deep/key", filepath.Join(g.a, "innocent"))
	ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, secret, later)}},
		g.a, g.b)
	write(t, filepath.Join(later, "key"), "SECRET")
	requireRead(t, ws, "secret/../f", "A/f", 0, "f")

	seen := map[string]bool{}
	require.NoError(t, walk(t.Context(), ws, ".", func(v visit) error {
		seen[v.Ref().Rel()] = true
		var denied *workspace.DeniedError
		if v.Err != nil {
			require.ErrorAs(t, v.Err, &denied)
		}
		if v.Name == "innocent" {
			_, err := v.Open()
			require.ErrorAs(t, err, &denied)
		}
		return nil
	}))
	require.True(t, seen["secret"] && seen["d/e/f"])
	require.False(t, seen["secret/deep"] || seen["later/key"])

	d := openTop(t, ws)
	var denied *workspace.DeniedError
	_, err := d.OpenDir("secret")
	require.ErrorAs(t, err, &denied)
	_, err = d.Open("innocent")
	require.ErrorAs(t, err, &denied)
}

// The links on the way to what is denied decide where it is, so none of them can be replaced.
//
// Clause A6.
func TestDeniedThroughLinks(t *testing.T) {
	top := realDir(t)
	home := mkdir(t, filepath.Join(top, "home"))
	link(t, "home", filepath.Join(top, "alias"))
	link(t, "dot", filepath.Join(home, "conf"))
	link(t, filepath.Join("..", "store"), filepath.Join(home, "dot", "agent"))
	mkdir(t, filepath.Join(home, "store"))
	spelled := filepath.Join(top, "alias", "conf", "agent", "config.json")
	for _, exists := range []bool{false, true} {
		if exists {
			write(t, filepath.Join(home, "file"), "SECRET")
			link(t, filepath.Join("..", "file"), filepath.Join(home, "store", "config.json"))
		}
		ws := openWith(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, spelled)}}, home)
		denied, protected := (*workspace.DeniedError)(nil), (*workspace.ProtectedError)(nil)
		for _, path := range []string{"conf/agent/config.json", "dot/agent/config.json",
			"store/config.json", "file"} {
			if path == "file" && !exists {
				continue
			}
			_, err := ws.WriteFile(t.Context(), path, nil, workspace.WriteOptions{})
			require.ErrorAs(t, err, &denied, path)
			if exists {
				_, err = ws.Open(path)
				require.ErrorAs(t, err, &denied, path)
			}
			require.ErrorAs(t, ws.HandOverFile(filepath.Join(home, path)), &denied, path)
		}
		for _, path := range []string{"conf", "dot/agent", "dot", "store"} {
			err := ws.Rename(path, fresh("moved"), workspace.Ref{}, workspace.Ref{})
			require.ErrorAs(t, err, &protected, path)
			require.ErrorAs(t, ws.Remove(path, workspace.RemoveOptions{}), &protected, path)
		}
	}
}

// Clause A5.
func TestFailedOpenLeaksNothing(t *testing.T) {
	dir := realDir(t)
	refuse := func() {
		refusal(t, workspace.Options{}, dir, filepath.Join(dir, "gone"))
		refusal(t, workspace.Options{Policy: workspace.Policy{Deny: dirs(t, dir)}}, dir)
	}
	refuse() // the first opens what the runtime waits with
	before := openFiles(t)
	for range 50 {
		refuse()
	}
	require.Equal(t, before, openFiles(t))
}

// openFiles returns how many files this process has open.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list a process's open files")
	}
	return len(list)
}

func TestRealLeavesNothingOpen(t *testing.T) {
	before := openFiles(t)
	for _, path := range []string{"/", realDir(t)} {
		dir, err := workspace.ParseDir(path)
		require.NoError(t, err)
		require.Equal(t, path, workspace.Real(dir).String())
	}
	require.Equal(t, before, openFiles(t))
}

func TestOpenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client is gone"))
	_, err := workspace.Open(ctx, mustRoots(t, realDir(t)), workspace.Options{})
	require.EqualError(t, err, "the client is gone")
}

func TestOpenZeroRoots(t *testing.T) {
	_, err := workspace.Open(t.Context(), workspace.Roots{}, workspace.Options{})
	require.Equal(t, workspace.RootErrors{{Reason: workspace.ReasonEmpty}}, rootErrors(err))
}

// Clause C8.
func TestReplacedRoots(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, g grounds)
		state  workspace.State
		reads  bool
	}{
		"untouched": {func(*testing.T, grounds) {}, workspace.OK, true},
		"renamed": {func(t *testing.T, g grounds) {
			require.NoError(t, os.Rename(g.b, g.b+"-moved"))
		}, workspace.Moved, true},
		"replaced by a directory": {func(t *testing.T, g grounds) {
			require.NoError(t, os.Rename(g.b, g.b+"-moved"))
			write(t, filepath.Join(g.b, "f"), "SECRET")
			write(t, filepath.Join(g.b, "d/f"), "SECRET")
		}, workspace.Replaced, true},
		"replaced by a link": {func(t *testing.T, g grounds) {
			require.NoError(t, os.Rename(g.b, g.b+"-moved"))
			write(t, filepath.Join(g.out, "f"), "SECRET")
			link(t, g.out, g.b)
		}, workspace.Replaced, true},
		"replaced by another root": {func(t *testing.T, g grounds) {
			require.NoError(t, os.Rename(g.b, g.b+"-moved"))
			require.NoError(t, os.Rename(g.a, g.b))
		}, workspace.Replaced, true},
		"moved into another root": {func(t *testing.T, g grounds) {
			require.NoError(t, os.Rename(g.b, filepath.Join(g.a, "B")))
		}, workspace.Moved, true},
		"deleted": {func(t *testing.T, g grounds) {
			require.NoError(t, os.RemoveAll(g.b))
		}, workspace.Missing, false},
		"deleted and made anew": {func(t *testing.T, g grounds) {
			require.NoError(t, os.RemoveAll(g.b))
			write(t, filepath.Join(g.b, "f"), "SECRET")
			write(t, filepath.Join(g.b, "d/f"), "SECRET")
		}, workspace.Replaced, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			link(t, filepath.Join(g.b, "d/f"), filepath.Join(g.a, "to-b"))
			link(t, "d/f", filepath.Join(g.b, "inside"))
			state, err := g.ws.State(1)
			require.NoError(t, err)
			require.Equal(t, workspace.OK, state)
			c.change(t, g)
			state, err = g.ws.State(1)
			require.NoError(t, err)
			require.Equal(t, c.state, state)
			for path, rel := range map[string]string{
				g.b + "/f": "f", "../B/f": "f", "../B/d/f": "d/f", "to-b": "d/f", "../B/inside": "d/f",
			} {
				if c.reads {
					requireRead(t, g.ws, path, "B/"+rel, 1, rel)
				} else {
					_, _, err := read(g.ws, path)
					require.Error(t, err)
				}
			}
			_, err = g.ws.WriteFile(t.Context(), "../B/new", []byte("new"),
				workspace.WriteOptions{})
			require.Equal(t, c.reads, err == nil, "%v", err)
			if c.state != workspace.OK {
				require.NoFileExists(t, filepath.Join(g.b, "new"),
					"what stands in its place is not written to")
			}
		})
	}
}

func TestClose(t *testing.T) {
	g := newGrounds(t)
	d, err := g.ws.OpenDir("d")
	require.NoError(t, err)
	f, err := g.ws.Open("f")
	require.NoError(t, err)
	before := openFiles(t)
	require.NoError(t, g.ws.Close())
	require.NoError(t, g.ws.Close())
	require.Equal(t, before-2, openFiles(t))
	for name, way := range ways {
		require.ErrorIs(t, way(g.ws, "f"), workspace.ErrClosed, name)
	}
	for name, change := range changes {
		require.ErrorIs(t, change(g.ws, "f"), workspace.ErrClosed, name)
	}
	require.Equal(t, "A/f", picture(t, g.dir)["A/f"])
	_, err = d.Open("f")
	require.ErrorIs(t, err, workspace.ErrClosed)
	_, err = d.OpenDir("e")
	require.ErrorIs(t, err, workspace.ErrClosed)
	_, err = g.ws.State(0)
	require.ErrorIs(t, err, workspace.ErrClosed)

	buf := make([]byte, 3)
	_, err = f.ReadAt(buf, 0)
	require.NoError(t, err, "an open file stays readable")
	require.Equal(t, "A/f", string(buf))
	require.NoError(t, f.Close())
	require.NoError(t, d.Close())
}

func TestCloseDuringOperations(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d/f"), filepath.Join(g.a, "across"))
	before := openFiles(t)
	for range volume.Of(8, 30) {
		ws, err := workspace.Open(t.Context(), mustRoots(t, g.a, g.b), workspace.Options{})
		require.NoError(t, err)
		var (
			running sync.WaitGroup
			began   = make(chan struct{}, len(ways))
		)
		for name, way := range ways {
			running.Go(func() {
				var err error
				for i := 0; err == nil || errors.Is(err, syscall.ENOTDIR); i++ {
					err = way(ws, "across")
					if i == 0 {
						began <- struct{}{}
					}
				}
				if !errors.Is(err, workspace.ErrClosed) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		for range ways {
			<-began
		}
		require.NoError(t, ws.Close())
		running.Wait()
	}
	require.Equal(t, before, openFiles(t), "the last operation lets the roots go")
}

func TestCloseWhileWalking(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d/f"), filepath.Join(g.a, "d/across"))
	before := openFiles(t)
	var visited []string
	require.NoError(t, walk(t.Context(), g.ws, ".", func(v visit) error {
		require.NoError(t, g.ws.Close())
		visited = append(visited, v.Name)
		if v.Type.IsDir() {
			return v.Err
		}
		f, err := v.Open()
		require.NoError(t, err)
		return f.Close()
	}))
	require.Equal(t, []string{"d", "f", "across", "e", "f"}, visited)
	require.Equal(t, before-2, openFiles(t), "the last operation lets the roots go")
}
