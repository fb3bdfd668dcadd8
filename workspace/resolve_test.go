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
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/workspace"
)

// grounds is a directory with two roots, A and B, and things outside them.
type grounds struct {
	dir, a, b, out string
	ws             *workspace.Workspace
}

func newGrounds(t *testing.T) grounds {
	dir := realDir(t)
	g := grounds{dir: dir, a: filepath.Join(dir, "A"), b: filepath.Join(dir, "B"),
		out: filepath.Join(dir, "out")}
	write(t, filepath.Join(g.a, "f"), "A/f")
	write(t, filepath.Join(g.a, "d/e/f"), "A/d/e/f")
	write(t, filepath.Join(g.b, "f"), "B/f")
	write(t, filepath.Join(g.b, "d/f"), "B/d/f")
	write(t, filepath.Join(g.out, "secret"), "SECRET")
	g.ws = open(t, g.a, g.b)
	return g
}

// Clause C3.
func TestLinksMakingPathsLong(t *testing.T) {
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "x"))
	link(t, "..", filepath.Join(g.a, "x/0"))
	for i := 1; i < 40; i++ {
		link(t, filepath.Join(g.a, strings.Repeat(fmt.Sprintf("x/../x/%d/", i-1), 40)),
			filepath.Join(g.a, fmt.Sprintf("x/%d", i)))
	}
	_, err := g.ws.Open("x/39/f")
	require.Error(t, err)
}

// Clause C9.
func TestRefusedNames(t *testing.T) {
	g := newGrounds(t)
	for _, c := range []struct {
		path string
		err  error
	}{
		{"", fs.ErrInvalid},
		{"a\x00b", fs.ErrInvalid},
		{g.a + "\x00", fs.ErrInvalid},
		{strings.Repeat("n", 256), syscall.ENAMETOOLONG},
		{strings.Repeat("n/", 20_000), syscall.ENAMETOOLONG},
		{"f/x", syscall.ENOTDIR},
		{"missing", fs.ErrNotExist},
	} {
		for name, way := range ways {
			err := way(g.ws, c.path)
			require.ErrorIs(t, err, c.err, "%s %.20q", name, c.path)
			var pathError *fs.PathError
			require.True(t, errors.As(err, &pathError), "%s %.20q", name, c.path)
			require.Equal(t, c.path, pathError.Path)
		}
	}
}

// Clause C10.
func TestARootThatIsALink(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "real/f"), "f")
	write(t, filepath.Join(dir, "other/f"), "other")
	link(t, "real", filepath.Join(dir, "spelled"))
	link(t, filepath.Join(dir, "spelled/f"), filepath.Join(dir, "real/by-spelling"))
	link(t, filepath.Join(dir, "real/f"), filepath.Join(dir, "real/by-real"))
	link(t, "../spelled/f", filepath.Join(dir, "other/relative"))
	ws := open(t, filepath.Join(dir, "spelled"), filepath.Join(dir, "other"))
	for _, path := range []string{
		"f", dir + "/spelled/f", dir +
			"/real/f", "by-spelling", "by-real", "../real/f", "../spelled/f",
		dir + "/other/../spelled/f", dir + "/other/relative",
	} {
		requireRead(t, ws, path, "f", 0, "f")
	}
	requireRead(t, ws, "../other/f", "other", 1, "f")
	root := ws.Root(0)
	require.Equal(t, filepath.Join(dir, "spelled"), root.Dir.String())
	require.Equal(t, filepath.Join(dir, "real"), root.Real.String())
	info, err := ws.Stat("../real/f")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "spelled/f"), info.Ref().Path())
	require.Equal(t, filepath.Join(dir, "real/f"), info.Ref().Real())
}

// oracle resolves paths by full paths, one component at a time. It is simple, and unsafe if
// anything changes concurrently.
type oracle struct {
	spelled, real []string // of the roots
}

var (
	errOutside = errors.New("outside")
	errLoop    = errors.New("loop")
)

func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func (o oracle) inRoot(path string) bool {
	for _, root := range o.real {
		if within(root, path) {
			return true
		}
	}
	return false
}

func (o oracle) aboveRoot(path string) bool {
	for _, root := range o.real {
		if within(path, root) {
			return true
		}
	}
	return false
}

func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// named returns the innermost root whose spelling or real path leads towards at/rest, and the names
// left after it.
func (o oracle) named(at string, rest []string) (real string, left []string, ok bool) {
	for n := len(rest); n >= 0; n-- {
		if slices.Contains(rest[:n], "..") {
			continue
		}
		path := filepath.Join(append([]string{at}, rest[:n]...)...)
		for i := range o.real {
			if path == o.spelled[i] || path == o.real[i] {
				return o.real[i], rest[n:], true
			}
		}
	}
	return "", nil, false
}

// resolve walks path from the real directory at, and returns where it ends.
func (o oracle) resolve(at, path string, hops *int) (string, error) {
	if filepath.IsAbs(path) {
		at = "/"
	}
	for rest := names(path); len(rest) > 0; {
		if !o.inRoot(at) {
			if real, left, ok := o.named(at, rest); ok {
				at, rest = real, left
				continue
			}
		}
		name := rest[0]
		rest = rest[1:]
		if info, err := os.Lstat(at); err != nil || !info.IsDir() {
			return "", fs.ErrNotExist
		}
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if !o.inRoot(next) && !o.aboveRoot(next) {
			return "", errOutside
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", fs.ErrNotExist
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if *hops++; *hops > 40 {
				return "", errLoop
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", err
			}
			if next, err = o.resolve(at, target, hops); err != nil {
				return "", err
			}
		}
		at = next
	}
	if !o.inRoot(at) {
		return "", errOutside
	}
	return at, nil
}

// verdict classifies err.
func verdict(err error) error {
	var outside *workspace.OutsideError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &outside):
		return errOutside
	case errors.Is(err, syscall.ELOOP):
		return errLoop
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fs.ErrNotExist
	default:
		return err
	}
}

var someNames = rapid.SliceOfN(rapid.SampledFrom([]string{
	"..", "..", "A", "B", "N", "S", "T", "U", "R", "out", "d", "d", "d", "l0", "l1", "l2", "l0", "l1", "f", "f", "missing",
}), 1, 5)

// somePath draws a path, relative or from top.
func somePath(t *rapid.T, top, label string) string {
	path := strings.Join(someNames.Draw(t, label), "/")
	if rapid.Bool().Draw(t, label+" absolute") {
		return top + "/" + path
	}
	return path
}

// randomTree fills top with directories, files and links.
func randomTree(t *rapid.T, top string) {
	for _, dir := range []string{"A", "A/d", "A/N", "A/N/d", "B", "B/d", "B/d/d", "R", "R/d", "out",
		"out/d"} {
		require.NoError(t, os.Mkdir(filepath.Join(top, dir), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(top, dir, "f"), nil, 0o644))
		for _, name := range []string{"l0", "l1", "l2"} {
			target := somePath(t, top, dir+"/"+name)
			require.NoError(t, os.Symlink(target, filepath.Join(top, dir, name)))
		}
	}
	for link, target := range map[string]string{"S": "R", "A/T": "../B/d", "out/U": top + "/A/N",
		"V": "S"} {
		require.NoError(t, os.Symlink(target, filepath.Join(top, link)))
	}
}

// rootSets have two to four roots: apart, nested, the same directory twice, links in roots and
// outside, directories behind links.
var rootSets = rapid.SampledFrom([]string{
	"A B", "B A S", "A A/N", "A/N B A", "S B", "S R A", "A/T A", "A/T B A/N", "out/U B", "A out/U", "S S/d A B",
	"R R/d S", "B B/d B/d/d", "V S A", "A/T/d A B", "out/U/d out/U A/T S", "R S/d",
})

// Clause A23.
func TestResolutionMatchesOracle(t *testing.T) {
	base := realDir(t)
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp(base, "tree")
		require.NoError(t, err)
		defer os.RemoveAll(top)
		randomTree(t, top)

		var o oracle
		for _, root := range strings.Fields(rootSets.Draw(t, "roots")) {
			o.spelled = append(o.spelled, filepath.Join(top, root))
			real, err := filepath.EvalSymlinks(filepath.Join(top, root))
			require.NoError(t, err)
			o.real = append(o.real, real)
		}
		ws, err := workspace.Open(context.Background(),
			mustRoots(t, o.spelled[0], o.spelled[1:]...), workspace.Options{})
		require.NoError(t, err)
		defer ws.Close()
		for range 20 {
			o.compare(t, ws, somePath(t, top, "path"))
		}
	})
}

// compare requires that ws agrees with the oracle about path, and opens the right file.
func (o oracle) compare(t *rapid.T, ws *workspace.Workspace, path string) {
	hops := 0
	want, wantErr := o.resolve(o.real[0], path, &hops)
	info, err := ws.Stat(path)
	require.Equal(t, wantErr, verdict(err), "%s: %s, %v", path, want, err)
	o.compareWriting(t, ws, path, want, wantErr)
	o.compareOwner(t, ws, path, want, wantErr)
	o.compareLstat(t, ws, path)
	if err != nil {
		for name, way := range ways {
			require.Error(t, way(ws, path), "%s %s", name, path)
		}
		return
	}
	require.Equal(t, want, info.Ref().Real(), path)
	there, err := os.Stat(want)
	require.NoError(t, err)
	require.True(t, os.SameFile(there, info.FileInfo), path)
	if there.IsDir() {
		d, err := ws.OpenDir(path)
		require.NoError(t, err, path)
		defer d.Close()
		require.Equal(t, info.Ref(), d.Ref(), path)
		return
	}
	f, err := ws.Open(path)
	require.NoError(t, err, path)
	defer f.Close()
	require.Equal(t, info.Ref(), f.Ref(), path)
	d, err := ws.OpenDir(filepath.Dir(want))
	require.NoError(t, err, path)
	defer d.Close()
	again, err := d.Open(filepath.Base(want))
	require.NoError(t, err, path)
	defer again.Close()
	require.Equal(t, info.Ref(), again.Ref(), path)
}

// compareLstat requires that Lstat describes path, a link itself, if the oracle says that its
// directory is in a root.
func (o oracle) compareLstat(t *rapid.T, ws *workspace.Workspace, path string) {
	dir, name := filepath.Split(path)
	hops := 0
	at, err := o.resolve(o.real[0], dir, &hops)
	if err != nil || name == ".." {
		return
	}
	want := filepath.Join(at, name)
	info, err := ws.Lstat(path)
	if err == nil && info.Ref().Rel() == "." {
		require.True(t, info.IsDir(), "%s: a root is a directory, whatever stands at its spelling",
			path)
		return
	}
	there, thereErr := os.Lstat(want)
	require.Equal(t, thereErr == nil, err == nil, "%s: %s, %v", path, want, err)
	if err != nil {
		require.Equal(t, fs.ErrNotExist, verdict(err), "%s: %v", path, err)
		return
	}
	require.Equal(t, want, info.Ref().Real(), path)
	require.True(t, os.SameFile(there, info.FileInfo), path)
	target, err := ws.Readlink(path)
	wantTarget, wantErr := os.Readlink(want)
	require.Equal(t, wantErr == nil, err == nil, "%s: %v", path, err)
	require.Equal(t, wantTarget, target, path)
}

// compareOwner requires that the innermost root owns path, the first of equal ones.
func (o oracle) compareOwner(t *rapid.T, ws *workspace.Workspace, path, want string,
	wantErr error) {
	if wantErr != nil {
		return
	}
	owner := -1
	for i, root := range o.real {
		if within(root, want) && (owner < 0 || len(root) > len(o.real[owner])) {
			owner = i
		}
	}
	info, err := ws.Stat(path)
	require.NoError(t, err)
	require.Equal(t, owner, info.Ref().Root().Index, "%s: %s", path, want)
	again, err := ws.Stat(info.Ref().Path())
	require.NoError(t, err, "Ref.Path leads there too")
	require.Equal(t, info.Ref(), again.Ref())
}

// compareWriting requires that path would be written where the oracle says. If only the last name
// is missing, it requires that it is in a root.
func (o oracle) compareWriting(t *rapid.T, ws *workspace.Workspace, path, want string,
	wantErr error) {
	ref, err := ws.WriteTarget(path)
	switch {
	case wantErr == fs.ErrNotExist && err == nil:
		parent, parentErr := filepath.EvalSymlinks(filepath.Dir(ref.Real()))
		require.NoError(t, parentErr, path)
		require.True(t, o.inRoot(parent), "%s: %s", path, ref.Real())
		require.NoFileExists(t, ref.Real(), path)
	case errors.Is(err, syscall.EISDIR):
		require.NoError(t, wantErr, path)
		require.DirExists(t, want, path)
	default:
		require.Equal(t, wantErr, verdict(err), "%s: %s, %v", path, want, err)
		if err == nil {
			require.Equal(t, want, ref.Real(), path)
		}
	}
}

// owners returns where each way to access path says it is. dir says whether it is a directory.
func owners(t *testing.T, ws *workspace.Workspace, path string, dir bool) map[string]workspace.Ref {
	t.Helper()
	refs := map[string]workspace.Ref{}
	note := func(way string, ref workspace.Ref, err error) {
		require.NoError(t, err, "%s %s", way, path)
		refs[way] = ref
	}
	info, err := ws.Stat(path)
	note("Stat", info.Ref(), err)
	info, err = ws.Lstat(path)
	note("Lstat", info.Ref(), err)
	fsInfo, err := ws.Fs().Stat(path)
	require.NoError(t, err)
	note("Fs.Stat", fsInfo.(workspace.Info).Ref(), nil)
	above, err := ws.OpenDir(filepath.Dir(path))
	require.NoError(t, err)
	defer above.Close()
	info, err = above.Lstat(filepath.Base(path))
	note("Directory.Lstat", info.Ref(), err)
	if dir {
		d, err := ws.OpenDir(path)
		require.NoError(t, err)
		defer d.Close()
		note("OpenDir", d.Ref(), nil)
		d, err = above.OpenDir(filepath.Base(path))
		require.NoError(t, err)
		defer d.Close()
		note("Directory.OpenDir", d.Ref(), nil)
	} else {
		f, err := ws.Open(path)
		require.NoError(t, err)
		defer f.Close()
		note("Open", f.Ref(), nil)
		f, err = above.Open(filepath.Base(path))
		require.NoError(t, err)
		defer f.Close()
		note("Directory.Open", f.Ref(), nil)
		ref, err := ws.WriteTarget(path)
		note("WriteTarget", ref, err)
		ref, err = ws.WriteFile(t.Context(), path, []byte("again"), workspace.WriteOptions{})
		note("WriteFile", ref, err)
	}
	start := filepath.Dir(path)
	require.NoError(t, ws.Walk(t.Context(), start, workspace.WalkOptions{},
		func(f *workspace.Folder) func() error {
			return func() error {
				for _, e := range f.Entries {
					if f.Ref().Real() == start && e.Name == filepath.Base(path) {
						refs["Walk"] = f.RefOf(e)
					}
				}
				return f.Err
			}
		}))
	return refs
}

// The innermost root owns a path, however it is reached, and in whatever order the roots were
// given.
//
// Clause A23.
func TestInnermostRootOwns(t *testing.T) {
	top := realDir(t)
	outer, middle, inner := filepath.Join(top, "o"), filepath.Join(top, "o/m"), filepath.Join(top,
		"o/m/x/i")
	for _, file := range []string{"o/f", "o/n/f", "o/m/f", "o/m/x/f", "o/m/x/i/f", "o/m/x/i/d/f",
		"o/m-twin/f"} {
		write(t, filepath.Join(top, file), file)
	}
	for _, roots := range [][]string{
		{outer, middle, inner}, {inner, middle, outer}, {middle, outer, inner}, {inner, outer,
			middle}, {outer, outer + "/./m", inner + "//"},
	} {
		ws := open(t, roots[0], roots[1:]...)
		for path, want := range map[string]struct {
			owner string
			rel   string
			dir   bool
		}{
			"o/f":         {owner: outer, rel: "f"},
			"o/n/f":       {owner: outer, rel: "n/f"},
			"o/n":         {owner: outer, rel: "n", dir: true},
			"o/m-twin/f":  {owner: outer, rel: "m-twin/f"},
			"o/m":         {owner: middle, rel: ".", dir: true},
			"o/m/f":       {owner: middle, rel: "f"},
			"o/m/x":       {owner: middle, rel: "x", dir: true},
			"o/m/x/i":     {owner: inner, rel: ".", dir: true},
			"o/m/x/i/f":   {owner: inner, rel: "f"},
			"o/m/x/i/d":   {owner: inner, rel: "d", dir: true},
			"o/m/x/i/d/f": {owner: inner, rel: "d/f"},
		} {
			for way, ref := range owners(t, ws, filepath.Join(top, path), want.dir) {
				require.Equal(t, want.owner, ref.Root().Dir.String(), "%s %s of %v", way, path,
					roots)
				require.Equal(t, want.rel, ref.Rel(), "%s %s of %v", way, path, roots)
			}
		}
	}
}
