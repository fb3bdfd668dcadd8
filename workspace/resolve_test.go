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
