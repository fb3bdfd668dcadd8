package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// grounds is a directory with two roots, A and B, and things outside them.
type grounds struct {
	dir, a, b, out string
	ws             *workspace.Workspace
}

func newGrounds(t *testing.T) grounds {
	dir := realDir(t)
	g := grounds{dir: dir, a: filepath.Join(dir, "A"), b: filepath.Join(dir, "B"), out: filepath.Join(dir, "out")}
	write(t, filepath.Join(g.a, "f"), "A/f")
	write(t, filepath.Join(g.a, "d/e/f"), "A/d/e/f")
	write(t, filepath.Join(g.b, "f"), "B/f")
	write(t, filepath.Join(g.b, "d/f"), "B/d/f")
	write(t, filepath.Join(g.out, "secret"), "SECRET")
	g.ws = open(t, g.a, g.b)
	return g
}

func TestA20_RelativePathsStartAtCwdOnly(t *testing.T) {
	g := newGrounds(t)
	write(t, filepath.Join(g.b, "only-in-b"), "b")
	requireRead(t, g.ws, "f", "A/f", 0, "f")
	requireRead(t, g.ws, "./d//e/./f", "A/d/e/f", 0, "d/e/f")
	_, err := g.ws.Open("only-in-b")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestA23_DotDotReachesADeclaredSibling(t *testing.T) {
	g := newGrounds(t)
	requireRead(t, g.ws, "../B/f", "B/f", 1, "f")
	requireRead(t, g.ws, g.a+"/../B/d/f", "B/d/f", 1, "d/f")
	requireRead(t, g.ws, "d/../../B/../A/f", "A/f", 0, "f")
	requireRead(t, g.ws, g.dir+"/A/../../"+filepath.Base(g.dir)+"/B/f", "B/f", 1, "f")
	requireOutside(t, g.ws, "../out/../B/f")
}

func TestA23_ALinkMustPointIntoARoot(t *testing.T) {
	g := newGrounds(t)
	link(t, "..", filepath.Join(g.a, "up"))
	link(t, "../out/../B", filepath.Join(g.a, "detour"))
	link(t, g.out+"/../B", filepath.Join(g.a, "absolute-detour"))
	link(t, filepath.Join(g.a, "back"), filepath.Join(g.out, "to-a"))
	link(t, "../out/to-a", filepath.Join(g.a, "through"))
	mkdir(t, filepath.Join(g.a, "back"))
	requireOutside(t, g.ws, "up")
	requireOutside(t, g.ws, "up/B/f")
	requireOutside(t, g.ws, "detour/f")
	requireOutside(t, g.ws, "absolute-detour/f")
	requireOutside(t, g.ws, "through")
}

func TestA23_NestedRoots(t *testing.T) {
	outer := realDir(t)
	write(t, filepath.Join(outer, "x/inner/f"), "inner")
	write(t, filepath.Join(outer, "x/f"), "outer")
	link(t, "x/inner", filepath.Join(outer, "l"))
	inner := filepath.Join(outer, "x/inner")
	for name, ws := range map[string]*workspace.Workspace{
		"inner first": open(t, inner, outer),
		"outer first": open(t, outer, inner),
	} {
		t.Run(name, func(t *testing.T) {
			i, o := 0, 1
			if name == "outer first" {
				i, o = 1, 0
			}
			requireRead(t, ws, inner+"/f", "inner", i, "f")
			requireRead(t, ws, outer+"/x/inner/f", "inner", i, "f")
			requireRead(t, ws, outer+"/l/f", "inner", i, "f")
			requireRead(t, ws, outer+"/l/../f", "outer", o, "x/f")
			requireRead(t, ws, inner+"/../f", "outer", o, "x/f")
			requireRead(t, ws, inner+"/../inner/f", "inner", i, "f")
			requireRead(t, ws, outer+"/x/./inner//f", "inner", i, "f")
			d, err := ws.OpenDir(outer + "/x")
			require.NoError(t, err)
			defer d.Close()
			d, err = d.OpenDir("inner")
			require.NoError(t, err)
			defer d.Close()
			require.Equal(t, i, d.Ref().Root().Index)
			require.Equal(t, ".", d.Ref().Rel())
		})
	}
}

func TestC1_DotDotOut(t *testing.T) {
	g := newGrounds(t)
	for _, path := range []string{
		"..", "../", "../out/secret", "../../..", "d/../../out/secret", "/", "/etc", "/..", "/../..",
		g.a + "/../out/secret", g.dir, g.dir + "/", g.out + "/secret", "f/../../out/secret",
		strings.Repeat("../", 300) + "etc/passwd",
	} {
		if path == "f/../../out/secret" {
			_, err := g.ws.Open(path)
			require.ErrorIs(t, err, syscall.ENOTDIR, "as the operating system says")
			continue
		}
		requireOutside(t, g.ws, path)
	}
}

func TestC1_DotDotBehindALinkedDirectory(t *testing.T) {
	g := newGrounds(t)
	link(t, "d/e", filepath.Join(g.a, "in"))
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	write(t, filepath.Join(g.a, "d/sibling"), "A/d/sibling")
	requireRead(t, g.ws, "in/../sibling", "A/d/sibling", 0, "d/sibling")
	requireRead(t, g.ws, "across/../f", "B/f", 1, "f")
	requireOutside(t, g.ws, "across/../../out/secret")
	_, err := g.ws.Open("missing/../f")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestC2_SiblingsThatShareAPrefix(t *testing.T) {
	g := newGrounds(t)
	for _, name := range []string{"A-evil", "A.bak", "Ax", "A ", "AA"} {
		write(t, filepath.Join(g.dir, name, "secret"), "SECRET")
		link(t, filepath.Join(g.dir, name, "secret"), filepath.Join(g.a, "l"+name))
		requireOutside(t, g.ws, g.a+name[1:]+"/secret")
		requireOutside(t, g.ws, "../"+name+"/secret")
		requireOutside(t, g.ws, "l"+name)
	}
}

func TestC3_LinksOut(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "file"))
	link(t, "../out/secret", filepath.Join(g.a, "relative"))
	link(t, g.out, filepath.Join(g.a, "dir"))
	link(t, "../../out", filepath.Join(g.a, "d/up"))
	link(t, "/", filepath.Join(g.a, "top"))
	link(t, "/proc/self/root", filepath.Join(g.a, "proc"))
	link(t, "/proc/self/cwd/../../../../etc/passwd", filepath.Join(g.a, "proc-cwd"))
	for _, path := range []string{
		"file", "relative", "dir", "dir/", "dir/secret", "d/up/secret", "top", "top/etc/passwd",
		"proc", "proc/etc/passwd", "proc-cwd", "dir/../A/f",
	} {
		requireOutside(t, g.ws, path)
	}
}

func TestC3_AChainThroughTheRootsThatPassesOutside(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "2"), filepath.Join(g.a, "1"))
	link(t, filepath.Join(g.out, "3"), filepath.Join(g.b, "2"))
	link(t, filepath.Join(g.a, "f"), filepath.Join(g.out, "3"))
	link(t, "../B/d", filepath.Join(g.a, "x"))
	link(t, "../../out", filepath.Join(g.b, "d/y"))
	link(t, "../A/d", filepath.Join(g.out, "z"))
	requireOutside(t, g.ws, "1")
	requireOutside(t, g.ws, "x/y/z/e/f")
}

func TestC3_Loops(t *testing.T) {
	g := newGrounds(t)
	link(t, "self", filepath.Join(g.a, "self"))
	link(t, filepath.Join(g.b, "pong"), filepath.Join(g.a, "ping"))
	link(t, filepath.Join(g.a, "ping"), filepath.Join(g.b, "pong"))
	link(t, "..", filepath.Join(g.a, "d/parent"))
	for _, path := range []string{"self", "self/x", "ping", "ping/", "d/parent/self"} {
		for name, way := range ways {
			require.ErrorIs(t, way(g.ws, path), syscall.ELOOP, "%s %s", name, path)
		}
	}
	requireRead(t, g.ws, strings.Repeat("d/parent/", 20)+"f", "A/f", 0, "f")
	_, err := g.ws.Open(strings.Repeat("d/parent/", 41) + "f")
	require.ErrorIs(t, err, syscall.ELOOP)
}

// chain makes n links in a that lead to its file f, each to the one before.
func chain(t *testing.T, a string, n int) string {
	for i := range n {
		target := fmt.Sprintf("chain%d", i-1)
		if i == 0 {
			target = "f"
		}
		link(t, target, filepath.Join(a, fmt.Sprintf("chain%d", i)))
	}
	return fmt.Sprintf("chain%d", n-1)
}

func TestC3_MoreThan40Links(t *testing.T) {
	g := newGrounds(t)
	requireRead(t, g.ws, chain(t, g.a, 40), "A/f", 0, "f")
	link(t, "chain39", filepath.Join(g.a, "chain40"))
	_, err := g.ws.Open("chain40")
	require.ErrorIs(t, err, syscall.ELOOP)
}

func TestC3_LinksCannotMakeAShortPathLong(t *testing.T) {
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "x"))
	link(t, "..", filepath.Join(g.a, "x/0"))
	for i := 1; i < 40; i++ {
		link(t, filepath.Join(g.a, strings.Repeat(fmt.Sprintf("x/../x/%d/", i-1), 40)), filepath.Join(g.a, fmt.Sprintf("x/%d", i)))
	}
	_, err := g.ws.Open("x/39/f")
	require.Error(t, err)
}

func TestC4_DanglingLinks(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.out, "missing"), filepath.Join(g.a, "dangling-out"))
	link(t, "missing", filepath.Join(g.a, "dangling-in"))
	requireOutside(t, g.ws, "dangling-out")
	requireOutside(t, g.ws, "dangling-out/new")
	_, err := g.ws.Open("dangling-in")
	require.ErrorIs(t, err, fs.ErrNotExist)
	info, err := g.ws.Lstat("dangling-out")
	require.NoError(t, err, "the link itself is in the root")
	require.Equal(t, fs.ModeSymlink, info.Mode().Type())
}

func TestC4_TrailingSlashes(t *testing.T) {
	g := newGrounds(t)
	link(t, g.out, filepath.Join(g.a, "out"))
	link(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "outfile"))
	link(t, "d", filepath.Join(g.a, "in"))
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "across"))
	link(t, "f", filepath.Join(g.a, "file"))
	link(t, "f/", filepath.Join(g.a, "file-slash"))
	for _, end := range []string{"/", "//", "/.", "/./", "//.//"} {
		requireOutside(t, g.ws, "out"+end)
		requireOutside(t, g.ws, "outfile"+end)
		for _, dir := range []string{"in", "across", "d", "."} {
			require.NoError(t, ways["OpenDir"](g.ws, dir+end), dir+end)
			require.ErrorIs(t, ways["Open"](g.ws, dir+end), syscall.EISDIR, dir+end)
			info, err := g.ws.Lstat(dir + end)
			require.NoError(t, err)
			require.True(t, info.IsDir(), "%s is not the link", dir+end)
		}
		for _, file := range []string{"f", "file"} {
			for name, way := range ways {
				require.ErrorIs(t, way(g.ws, file+end), syscall.ENOTDIR, "%s %s", name, file+end)
			}
		}
	}
	require.ErrorIs(t, ways["Open"](g.ws, "file-slash"), syscall.ENOTDIR)
}

func TestC9_Names(t *testing.T) {
	g := newGrounds(t)
	for _, name := range []string{
		"-rf", "new\nline", "\xff\xfe", "ü", "u\u0308", "UPPER", "upper", " ", "...", "a\\b", "%2e%2e", "~", "*",
		"gone (deleted)", strings.Repeat("n", 255),
	} {
		path := filepath.Join(g.a, name)
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Logf("this file system refuses %q: %v", name, err)
			continue
		}
		requireRead(t, g.ws, path, name, 0, name)
		requireRead(t, g.ws, name, name, 0, name)
	}
}

func TestC9_RefusedNames(t *testing.T) {
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

func TestC9_DeepPaths(t *testing.T) {
	g := newGrounds(t)
	deep, err := os.OpenRoot(g.a)
	require.NoError(t, err)
	defer deep.Close()
	name := strings.Repeat("d", 200)
	names := strings.Repeat(name+"/", 30) // 6,000 bytes, beyond PATH_MAX
	require.NoError(t, deep.MkdirAll(names, 0o755))
	require.NoError(t, deep.WriteFile(names+"f", []byte("deep"), 0o644))
	requireRead(t, g.ws, names+"f", "deep", 0, names+"f")
}

func TestC10_AbsoluteLinkInItsOwnRoot(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.a, "abs"))
	requireRead(t, g.ws, "abs/e/f", "A/d/e/f", 0, "d/e/f")
	link(t, filepath.Join(g.a, "d/e/f"), filepath.Join(g.a, "absfile"))
	requireRead(t, g.ws, "absfile", "A/d/e/f", 0, "d/e/f")
	link(t, g.a, filepath.Join(g.a, "d/top"))
	requireRead(t, g.ws, "d/top/f", "A/f", 0, "f")
}

func TestC10_FromRootToRootAndBack(t *testing.T) {
	g := newGrounds(t)
	link(t, filepath.Join(g.b, "d"), filepath.Join(g.a, "to-b"))
	link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "d/to-a"))
	link(t, "../../../B/f", filepath.Join(g.a, "d/e/relative"))
	requireRead(t, g.ws, "to-b/f", "B/d/f", 1, "d/f")
	requireRead(t, g.ws, "to-b/to-a/e/f", "A/d/e/f", 0, "d/e/f")
	requireRead(t, g.ws, "to-b/to-a/e/relative", "B/f", 1, "f")
}

func TestC10_AChainOf30Links(t *testing.T) {
	g := newGrounds(t)
	requireRead(t, g.ws, chain(t, g.a, 30), "A/f", 0, "f")
}

func TestC10_ARootThatIsALink(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "real/f"), "f")
	write(t, filepath.Join(dir, "other/f"), "other")
	link(t, "real", filepath.Join(dir, "spelled"))
	link(t, filepath.Join(dir, "spelled/f"), filepath.Join(dir, "real/by-spelling"))
	link(t, filepath.Join(dir, "real/f"), filepath.Join(dir, "real/by-real"))
	link(t, "../spelled/f", filepath.Join(dir, "other/relative"))
	ws := open(t, filepath.Join(dir, "spelled"), filepath.Join(dir, "other"))
	for _, path := range []string{
		"f", dir + "/spelled/f", dir + "/real/f", "by-spelling", "by-real", "../real/f", "../spelled/f",
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

func TestC10_TwoSpellingsOfOneDirectory(t *testing.T) {
	dir := realDir(t)
	real, spelled := filepath.Join(dir, "real"), filepath.Join(dir, "spelled")
	write(t, filepath.Join(real, "f"), "f")
	link(t, "real", spelled)
	for _, roots := range [][]string{{spelled, real}, {real, spelled}} {
		ws := open(t, roots[0], roots[1])
		require.Len(t, ws.Opened(), 2)
		requireRead(t, ws, real+"/f", "f", 0, "f")
		requireRead(t, ws, spelled+"/f", "f", 0, "f")
		requireRead(t, ws, "../spelled/./f", "f", 0, "f")
	}
}

func TestC10_LinkFarm(t *testing.T) {
	dir := realDir(t)
	store, app := filepath.Join(dir, "app/node_modules/.pnpm"), filepath.Join(dir, "app")
	write(t, filepath.Join(store, "a@1/node_modules/a/index.js"), "a")
	write(t, filepath.Join(store, "b@2/node_modules/b/index.js"), "b")
	link(t, "../../b@2/node_modules/b", filepath.Join(store, "a@1/node_modules/b"))
	link(t, ".pnpm/a@1/node_modules/a", filepath.Join(app, "node_modules/a"))
	link(t, "../../../lib", filepath.Join(app, "node_modules/@scope/lib"))
	write(t, filepath.Join(dir, "lib/index.js"), "lib")
	link(t, "../../app/node_modules/a", filepath.Join(dir, "lib/node_modules/a"))
	ws := open(t, app, filepath.Join(dir, "lib"))
	requireRead(t, ws, "node_modules/a/index.js", "a", 0, "node_modules/.pnpm/a@1/node_modules/a/index.js")
	requireRead(t, ws, "node_modules/a/../b/index.js", "b", 0, "node_modules/.pnpm/b@2/node_modules/b/index.js")
	requireRead(t, ws, "node_modules/@scope/lib/index.js", "lib", 1, "index.js")
	requireRead(t, ws, "node_modules/@scope/lib/node_modules/a/index.js", "a", 0, "node_modules/.pnpm/a@1/node_modules/a/index.js")
}
