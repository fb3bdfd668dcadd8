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

// Clause A7.
func TestDirsWithoutCwd(t *testing.T) {
	dirs, err := workspace.ParseDirs([]string{abs("/a"), abs("/b"), abs("/a/")})
	require.NoError(t, err)
	require.Equal(t, []string{abs("/a"), abs("/b")}, dirs.Strings())
	cwd, err := workspace.ParseDir(abs("/a"))
	require.NoError(t, err)
	require.Equal(t, []string{abs("/b")}, workspace.RootsFrom(cwd, dirs).Additional().Strings())
	require.Equal(t, []string{abs("/a"), abs("/b")}, dirs.Strings(), "the list itself is unchanged")
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
	require.Equal(t, encoded(abs("/b")), encoded(roots.Cwd()))
	require.Equal(t, "[]", encoded(mustRoots(t, abs("/b")).Additional()))
	require.Equal(t, "[]", encoded(workspace.Roots{}))
}

// Clause A20.
func TestCwdFirst(t *testing.T) {
	roots := mustRoots(t, abs("/z"), abs("/y"), abs("/x"))
	require.Equal(t, 3, roots.Len())
	require.Equal(t, roots.Cwd(), roots.At(0))
	require.Equal(t, abs("/x"), roots.At(2).String())
	require.Equal(t, "["+abs("/z")+", "+abs("/y")+", "+abs("/x")+"]", roots.String())
	require.False(t, roots.Equal(mustRoots(t, abs("/z"), abs("/x"), abs("/y"))), "order counts")
	require.Zero(t, workspace.Roots{}.Len())
}

// spelling draws a path of few names, in any spelling.
var spelling = rapid.Custom(func(t *rapid.T) string {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "..", ".", "", "a b", "ü"}), 0,
		5).Draw(t, "names")
	return abs("/" + strings.Join(names, "/") +
		rapid.SampledFrom([]string{"", "/", "/."}).Draw(t, "end"))
})

var spellings = rapid.SliceOfN(spelling, 0, 8)

// Clause A8.
func TestNormaliseTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roots := mustRoots(t, spelling.Draw(t, "cwd"), spellings.Draw(t, "additional")...)
		again := mustRoots(t, roots.Cwd().String(), roots.Additional().Strings()...)
		require.True(t, roots.Equal(again))
		for _, dir := range roots.All() {
			for _, name := range strings.Split(strings.TrimPrefix(dir.String(), abs("/")), "/") {
				require.NotEqual(t, ".", name)
			}
		}
	})
}

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
