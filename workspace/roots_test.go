package workspace_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/workspace"
)

// abs returns a path that is absolute on this platform.
func abs(path string) string { return workspace.Native(path) }

func mustRoots(tb rapid.TB, cwd string, additional ...string) workspace.Roots {
	tb.Helper()
	roots, err := workspace.NewRoots(cwd, additional)
	require.NoError(tb, err)
	return roots
}

func paths(roots workspace.Roots) []string {
	var out []string
	for _, dir := range roots.All() {
		out = append(out, dir.String())
	}
	return out
}

// Clause A4.
func TestEachReason(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		reason workspace.Reason
	}{
		"empty":    {"", workspace.ReasonEmpty},
		"relative": {"src", workspace.ReasonRelative},
		"dot":      {".", workspace.ReasonRelative},
		"nul":      {abs("/a\x00b"), workspace.ReasonNUL},
		"encoding": {abs("/a\xffb"), workspace.ReasonEncoding},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workspace.NewRoots(c.path, nil)
			require.Equal(t, workspace.RootErrors{{Path: c.path, Reason: c.reason}},
				rootErrors(err))

			_, err = workspace.NewRoots(abs("/a"), []string{abs("/b"), c.path})
			require.Equal(t, workspace.RootErrors{
				{Root: 2, Path: c.path, Reason: c.reason},
			}, rootErrors(err))
		})
	}
}

// Clause A5.
func TestAllErrorsCwdFirst(t *testing.T) {
	_, err := workspace.NewRoots("", []string{"a\x00", abs("/ok"), "", "b"})
	require.Equal(t, workspace.RootErrors{
		{Path: "", Reason: workspace.ReasonEmpty},
		{Root: 1, Path: "a\x00", Reason: workspace.ReasonNUL},
		{Root: 1, Path: "a\x00", Reason: workspace.ReasonRelative},
		{Root: 3, Path: "", Reason: workspace.ReasonEmpty},
		{Root: 4, Path: "b", Reason: workspace.ReasonRelative},
	}, rootErrors(err))
}

// Clause A15.
func TestMarshalJSON(t *testing.T) {
	encoded := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return string(raw)
	}
	roots := mustRoots(t, abs("/b"), abs("/a"))
	require.Equal(t, encoded([]string{abs("/b"), abs("/a")}), encoded(roots))
	require.Equal(t, "["+abs("/b")+", "+abs("/a")+"]", roots.String())
	require.False(t, roots.Equal(mustRoots(t, abs("/a"), abs("/b"))), "order counts")
	require.Equal(t, encoded(abs("/b")), encoded(roots.Cwd()))
	require.Equal(t, "[]", encoded(mustRoots(t, abs("/b")).Additional()))
	require.Equal(t, "[]", encoded(workspace.Roots{}))
}

// spelling draws a path of few names, in any spelling.
var spelling = rapid.Custom(func(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "..", ".", "", "a b", "ü"}), 0,
		5).Draw(t, "names")
	return abs("/" + strings.Join(names, "/") +
		rapid.SampledFrom([]string{"", "/", "/."}).Draw(t, "end"))
})

var spellings = rapid.SliceOfN(spelling, 0, 8)

// Clause A7.
func TestFirstOccurrencesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cwd, additional := spelling.Draw(t, "cwd"), spellings.Draw(t, "additional")
		var want []string
		for _, path := range append([]string{cwd}, additional...) {
			dir, err := workspace.ParseDir(path)
			require.NoError(t, err)
			if !slices.Contains(want, dir.String()) {
				want = append(want, dir.String())
			}
		}
		require.Equal(t, want, paths(mustRoots(t, cwd, additional...)))
	})
}

func FuzzParseDir(f *testing.F) {
	for _, seed := range []string{"", "/", "a", "/a b/%/#?", "/ü\n", "/\xff", "/a\x00", `C:\a`,
		`\\s\h\x`, "/a/../.", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			require.NotEmpty(t, rootErrors(err))
			return
		}
		again, err := workspace.ParseDir(dir.String())
		require.NoError(t, err)
		require.Equal(t, dir, again)

		uri, err := url.Parse(dir.URI())
		require.NoError(t, err)
		require.Equal(t, dir.String(), workspace.FromURI(uri))
		for _, c := range dir.URI() {
			require.True(t, c > ' ' && c < 0x7f, "%q", dir.URI())
		}
	})
}

func TestDirMoved(t *testing.T) {
	at := func(path string) workspace.Dir {
		d, err := workspace.ParseDir(abs("/" + path))
		require.NoError(t, err)
		return d
	}
	for _, c := range []struct{ dir, from, to, want string }{
		{"a", "a", "b", "b"},
		{"a/x/y", "a", "b", "b/x/y"},
		{"a/x", "a", "a/x", "a/x/x"},
		{"a/../c", "a", "b", "b/../c"},
		{"a", "", "b", "b/a"},
		{"a/x", "a", "", "x"},
		{"a-2", "a", "b", ""},
		{"c/a", "a", "b", ""},
		{"a", "a/x", "b", ""},
	} {
		moved, ok := at(c.dir).Moved(at(c.from), at(c.to))
		require.Equal(t, c.want != "", ok, c)
		if c.want == "" {
			c.want = c.dir
		}
		require.Equal(t, at(c.want), moved, c)
	}
}

// Clause A33.
func TestLocate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	top := dirtest.New(t)
	t.Setenv("HOME", filepath.Join(top, "home"))
	require.NoError(t, os.MkdirAll(filepath.Join(top, "src", "app"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(top, "src", "app"), filepath.Join(top, "link")))
	app, link := filepath.Join(top, "src", "app"), filepath.Join(top, "link")
	for _, c := range []struct{ from, path, want string }{
		{app, "", ""}, {app, "/x/../y", "/x/../y"}, {app, "~", top + "/home"}, {app, "~/a", top +
			"/home/a"}, {app, "~a", app + "/~a"},
		{app, "a/../b", app + "/a/../b"}, {app, ".", app}, {app, "./a", app + "/a"}, {app, "..",
			top + "/src"}, {app, "../lib/", top + "/src/lib/"},
		{app, ".././/../x", top + "/x"}, {link, "a", link + "/a"}, {link, "../lib", top +
			"/src/lib"}, {"/", "a", "/a"}, {"/", "../..", "/"},
	} {
		from, err := workspace.ParseDir(c.from)
		require.NoError(t, err)
		require.Equal(t, c.want, from.Locate(c.path), "%s from %s", c.path, c.from)
	}
}

// Nothing is changed in a root that may only be read, by whatever way it is reached, and what could
// be asked before says why.
//
// Clause A39.
func TestReadOnlyRoots(t *testing.T) {
	top := realDir(t)
	app, dep := filepath.Join(top, "app"), filepath.Join(top, "dep")
	inner, alias := filepath.Join(dep, "inner"), filepath.Join(top, "alias")
	write(t, filepath.Join(app, "f"), "of app")
	write(t, filepath.Join(dep, "f"), "of dep")
	write(t, filepath.Join(dep, "d/f"), "of dep")
	write(t, filepath.Join(inner, "f"), "of inner")
	link(t, dep, alias)
	link(t, "../dep/f", filepath.Join(app, "to-f"))
	link(t, "../dep/new", filepath.Join(app, "to-new"))
	link(t, "../dep", filepath.Join(app, "to-dep"))
	require.NoError(t, os.Link(filepath.Join(dep, "f"), filepath.Join(app, "hard")))
	// The client names the folder in other spellings, too.
	roots := mustRoots(t, app, alias, dep, inner+"/..", inner).Granting(func(dir workspace.Dir) workspace.Grant {
		if dir.String() == dep {
			return workspace.ReadOnly
		}
		return workspace.ReadWrite
	})
	require.Len(t, roots.ReadOnly(), 1)
	ws, err := workspace.Open(t.Context(), roots, workspace.Options{})
	require.NoError(t, err)
	defer ws.Close()
	for i, want := range []workspace.Grant{workspace.ReadWrite, workspace.ReadOnly, workspace.ReadOnly,
		workspace.ReadOnly, workspace.ReadWrite} {
		require.Equal(t, want, ws.Root(i).Grant)
	}
	before := dirtest.Planted(t, dep)
	ctx := t.Context()
	in := func(err error, what string) {
		t.Helper()
		require.ErrorContains(t, err, "is read-only", what)
	}
	for _, path := range []string{dep + "/f", dep + "/new", "../dep/f", "../app/../dep/./f", "to-f", "to-new",
		"to-dep/f", "to-dep/d/new", alias + "/f", dep + "/inner/../f"} {
		_, err := ws.WriteFile(ctx, path, []byte("x"), workspace.WriteOptions{})
		in(err, path)
		_, err = ws.WriteTarget(path)
		in(err, path)
		_, err = ws.LockFile(ctx, path)
		in(err, path)
		_, err = ws.Fs().Create(path)
		in(err, path)
	}
	for _, path := range []string{dep + "/new", "to-dep/new", alias + "/d/new"} {
		err := ws.Mkdir(path, workspace.Ref{})
		in(err, path)
		_, err = ws.MkdirTarget(path)
		in(err, path)
	}
	for _, path := range []string{dep + "/f", "../dep/d", "to-dep/f", alias + "/d/f"} {
		in(ws.Remove(path, workspace.RemoveOptions{}), path)
		_, err := ws.RemoveTarget(path)
		in(err, path)
		err = ws.Rename(path, "moved", workspace.Ref{}, workspace.Ref{})
		in(err, path)
		_, _, err = ws.RenameTarget(path, "moved")
		in(err, path)
	}
	err = ws.Rename("f", dep+"/moved", workspace.Ref{}, workspace.Ref{})
	in(err, "into it")
	err = ws.Rename("f", "to-dep/moved", workspace.Ref{}, workspace.Ref{})
	in(err, "through a link")
	require.Equal(t, before, dirtest.Planted(t, dep))

	// The other name of a file gets a file of its own, and an inner root is as it was granted.
	_, err = ws.WriteFile(ctx, "hard", []byte("x"), workspace.WriteOptions{MayLose: workspace.LosesLinks})
	require.NoError(t, err)
	require.Equal(t, before, dirtest.Planted(t, dep))
	_, err = ws.WriteFile(ctx, inner+"/f", []byte("x"), workspace.WriteOptions{})
	require.NoError(t, err)
	text, err := ws.ReadText(ctx, dep+"/f", workspace.TextOptions{})
	require.NoError(t, err)
	require.Contains(t, text.Content, "of dep")
}
