package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/workspace"
)

func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	require.NoError(t, unix.Mount(source, target, kind, flags, ""), "mounting %s at %s", source,
		target)
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

func bind(t *testing.T, source, target string) {
	t.Helper()
	mount(t, source, target, "", unix.MS_BIND|unix.MS_REC)
}

func withMounts(tb testing.TB, m workspace.Mounts, cwd string,
	additional ...string) *workspace.Workspace {
	return openWith(tb, workspace.Options{Mounts: m}, cwd, additional...)
}

// requireMounted requires that every way to access path fails because of a mount.
func requireMounted(t *testing.T, ws *workspace.Workspace, path string) {
	t.Helper()
	for name, way := range ways {
		require.ErrorContains(t, way(ws, path), "mounted there", "%s %s", name, path)
		require.ErrorContains(t, way(ws, path), path)
	}
}

var policies = map[string]workspace.Mounts{
	"none": workspace.NoMounts, "existing": workspace.ExistingMounts, "any": workspace.AnyMounts,
}

// Clause C7.
func TestMounts(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for name, test := range map[string]func(*testing.T){
		"C7/made after opening":        mountedLater,
		"C7/a file":                    aMountedFile,
		"C7/there before":              mountedBefore,
		"C7/another in its place":      mountedInPlace,
		"C7/over a root":               mountedOverARoot,
		"C7/a root is one":             aRootThatIsMounted,
		"C7/proc":                      procInARoot,
		"C7/walks go on":               walksPassMounts,
		"C7/a name with spaces":        mountPointNames,
		"C7/denied under another name": deniedUnderAnotherName,
		"C7/a denied root":             deniedRootUnderAnotherName,
	} {
		t.Run(name, test)
	}
}

func mountedLater(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			link(t, "d", filepath.Join(g.a, "in"))
			link(t, filepath.Join(g.a, "d"), filepath.Join(g.b, "across"))
			ws := withMounts(t, policy, g.a, g.b)
			d, err := ws.OpenDir(".")
			require.NoError(t, err)
			defer d.Close()
			write(t, filepath.Join(g.out, "e/f"), "OUT")
			bind(t, g.out, filepath.Join(g.a, "d"))
			if policy == workspace.AnyMounts {
				requireRead(t, ws, "d/e/f", "OUT", 0, "d/e/f")
				return
			}
			for _, path := range []string{"d", "d/", "d/e", "d/e/f", "d/secret", "d/none", "d/..",
				"d/../f", g.a + "/d/e/f", "../A/d/e"} {
				requireMounted(t, ws, path)
				_, err := ws.Lstat(path)
				require.ErrorContains(t, err, "mounted there", path)
			}
			for _, path := range []string{"in", "in/secret", "../B/across", "../B/across/secret"} {
				requireMounted(t, ws, path)
			}
			_, err = d.OpenDir("d")
			require.ErrorContains(t, err, "mounted there")
			_, err = d.Lstat("d")
			require.ErrorContains(t, err, "mounted there")
			require.NoError(t, unix.Unmount(filepath.Join(g.a, "d"), unix.MNT_DETACH))
			requireRead(t, ws, "d/e/f", "A/d/e/f", 0, "d/e/f")
		})
	}
}

func aMountedFile(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			bind(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "d/e/f"))
			ws := withMounts(t, policy, g.a, g.b)
			d, err := ws.OpenDir(".")
			require.NoError(t, err)
			defer d.Close()
			bind(t, filepath.Join(g.out, "secret"), filepath.Join(g.a, "f"))
			if _, _, err := d.ReadFile(workspace.Entry{Name: "f"}, nil,
				100); policy != workspace.AnyMounts {
				require.ErrorContains(t, err, "mounted there", "it was listed before")
			}
			for path, granted := range map[string]bool{
				"d/e/f": policy != workspace.NoMounts,
				"f":     policy == workspace.AnyMounts,
			} {
				if granted {
					requireRead(t, ws, path, "SECRET", 0, path)
					continue
				}
				for _, way := range []string{"Open", "Stat", "WriteFile", "WriteTarget, WriteFile",
					"Fs.Open", "Fs.Stat"} {
					require.ErrorContains(t, ways[way](ws, path), "mounted there", "%s %s", way, path)
				}
			}
		})
	}
}

// mountedBefore is a development container: a file system of its own at node_modules.
func mountedBefore(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			modules := mkdir(t, filepath.Join(g.a, "d/node_modules"))
			mount(t, "tmpfs", modules, "tmpfs", 0)
			write(t, filepath.Join(modules, "x/index.js"), "x")
			inner := mkdir(t, filepath.Join(modules, "x/inner"))
			mount(t, "tmpfs", inner, "tmpfs", 0)
			write(t, filepath.Join(inner, "f"), "inner")
			ws := withMounts(t, policy, g.a, g.b)
			if policy == workspace.NoMounts {
				requireMounted(t, ws, "d/node_modules/x/index.js")
				requireMounted(t, ws, "d/node_modules/x/inner")
				requireRead(t, ws, "d/e/f", "A/d/e/f", 0, "d/e/f")
				return
			}
			requireRead(t, ws, "d/node_modules/x/index.js", "x", 0, "d/node_modules/x/index.js")
			requireRead(t, ws, "d/node_modules/x/inner/f", "inner", 0, "d/node_modules/x/inner/f")
			_, err := ws.WriteFile(t.Context(), "d/node_modules/x/new", []byte("new"),
				workspace.WriteOptions{})
			require.NoError(t, err)
			require.FileExists(t, filepath.Join(modules, "x/new"))
			// Mounting the same directory again makes another mount.
			bind(t, modules, mkdir(t, filepath.Join(g.b, "again")))
			if policy == workspace.ExistingMounts {
				requireMounted(t, ws, "../B/again")
			}
		})
	}
}

// mountedInPlace checks a mount that replaces another: the system may use the id of the old one
// again.
func mountedInPlace(t *testing.T) {
	var stat unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID_UNIQUE, &stat))
	if stat.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		t.Skip("this kernel has no unique ids of mounts, which came with Linux 6.8")
	}
	g := newGrounds(t)
	at := mkdir(t, filepath.Join(g.a, "m"))
	mount(t, "tmpfs", at, "tmpfs", 0)
	write(t, filepath.Join(at, "f"), "before")
	ws := open(t, g.a, g.b)
	requireRead(t, ws, "m/f", "before", 0, "m/f")
	for range 100 {
		require.NoError(t, unix.Unmount(at, 0))
		require.NoError(t, unix.Mount(g.out, at, "", unix.MS_BIND, ""))
		_, _, err := read(ws, "m/secret")
		require.ErrorContains(t, err, "mounted there")
	}
}

func mountedOverARoot(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			ws := withMounts(t, policy, g.a, g.b)
			write(t, filepath.Join(g.out, "d/e/f"), "OUT")
			bind(t, g.out, g.a)
			requireRead(t, ws, "d/e/f", "A/d/e/f", 0, "d/e/f")
			requireRead(t, ws, g.a+"/d/e/f", "A/d/e/f", 0, "d/e/f")
			requireRead(t, ws, "../B/../A/f", "A/f", 0, "f")
			_, err := ws.Stat("secret")
			require.ErrorIs(t, err, fs.ErrNotExist)
			state, err := ws.State(0)
			require.NoError(t, err)
			require.Equal(t, workspace.Replaced, state)
		})
	}
}

func aRootThatIsMounted(t *testing.T) {
	g := newGrounds(t)
	inner := mkdir(t, filepath.Join(g.a, "inner"))
	mount(t, "tmpfs", inner, "tmpfs", 0)
	write(t, filepath.Join(inner, "f"), "inner")
	ws := withMounts(t, workspace.NoMounts, g.a, inner)
	requireRead(t, ws, "inner/f", "inner", 1, "f")
	requireRead(t, ws, "inner/../f", "A/f", 0, "f")
	requireRead(t, ws, inner+"/f", "inner", 1, "f")
}

func procInARoot(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			link(t, g.a, filepath.Join(g.out, "way-in"))
			bind(t, "/proc", mkdir(t, filepath.Join(g.a, "proc")))
			ws := withMounts(t, policy, g.a, g.b)
			dir, err := os.Open(g.a)
			require.NoError(t, err)
			defer dir.Close()
			for _, path := range []string{
				"proc/self/root/etc/passwd", "proc/self/cwd", "proc/self/cwd/f", "proc/self/fd/0", "proc/self/exe",
				"proc/thread-self/root/" + g.out + "/secret", "proc/self", "proc/mounts",
			} {
				for name, way := range ways {
					err := way(ws, path)
					if policy == workspace.NoMounts {
						require.ErrorContains(t, err, "mounted there", "%s %s", name, path)
						continue
					}
					var outside *workspace.OutsideError
					require.ErrorAs(t, err, &outside, "%s %s", name, path)
					require.Contains(t, outside.Why, "belongs to the system")
				}
			}
		})
	}
}

func walksPassMounts(t *testing.T) {
	g := newGrounds(t)
	write(t, filepath.Join(g.a, "d/z"), "z")
	ws := open(t, g.a, g.b)
	bind(t, g.out, filepath.Join(g.a, "d/e"))
	var walked, failed []string
	require.NoError(t, walk(t.Context(), ws, ".", func(v visit) error {
		walked = append(walked, v.Ref().Rel())
		if v.Err != nil {
			require.ErrorContains(t, v.Err, "mounted there")
			failed = append(failed, v.Ref().Rel())
		}
		return nil
	}))
	require.Equal(t, []string{"d", "f", "d/e", "d/z", "d/e"}, walked)
	require.Equal(t, []string{"d/e"}, failed)
	require.Equal(t, []string{"f", "d/z", "! d/e"}, walkFiles(t, ws, ".", workspace.WalkOptions{}))
}

func mountPointNames(t *testing.T) {
	g := newGrounds(t)
	for _, name := range []string{"with space", "tab\tnewline\n", `back\040slash`, "#"} {
		at := mkdir(t, filepath.Join(g.a, name))
		mount(t, "tmpfs", at, "tmpfs", 0)
		write(t, filepath.Join(at, "f"), name)
	}
	ws := open(t, g.a, g.b)
	for _, name := range []string{"with space", "tab\tnewline\n", `back\040slash`, "#"} {
		requireRead(t, ws, name+"/f", name, 0, name+"/f")
	}
}

// deniedUnderAnotherName checks that a denied directory stays denied where it is mounted a second
// time.
func deniedUnderAnotherName(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			write(t, filepath.Join(g.a, "secret/deep/key"), "SECRET")
			bind(t, filepath.Join(g.a, "secret"), mkdir(t, filepath.Join(g.a, "open")))
			ws := openWith(t, workspace.Options{
				Mounts: policy, Policy: workspace.Policy{Deny: dirs(t,
					filepath.Join(g.a, "secret"))},
			}, g.a, g.b)
			for _, path := range []string{"open", "open/", "open/deep", "open/deep/key",
				"open/missing", "secret/deep/key"} {
				for name, way := range ways {
					err := way(ws, path)
					var denied *workspace.DeniedError
					require.True(t, errors.As(err, &denied) || policy == workspace.NoMounts &&
						err != nil && strings.Contains(err.Error(), "mounted there"),
						"%s %s: %v", name, path, err)
				}
			}
			requireRead(t, ws, "f", "A/f", 0, "f")
			if policy != workspace.NoMounts {
				requireRead(t, ws, "open/deep/../../f", "A/f", 0, "f")
			}
			require.NotContains(t, walkFiles(t, ws, ".", workspace.WalkOptions{}), "open/deep/key")
			require.Error(t, ws.Remove("open", workspace.RemoveOptions{}))
			require.FileExists(t, filepath.Join(g.a, "secret/deep/key"))
			d, err := ws.OpenDir(".")
			require.NoError(t, err)
			defer d.Close()
			_, err = d.OpenDir("open")
			require.Error(t, err)
		})
	}
}

// No operation changes a later mount, or moves or removes the directory that it hides.
//
// Clause C7.
func TestChangesOnMounts(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for name, policy := range policies {
		t.Run("C7/"+name, func(t *testing.T) {
			g := newGrounds(t)
			write(t, filepath.Join(g.out, "e/f"), "SECRET")
			mounted := mkdir(t, filepath.Join(g.a, "x/mounted"))
			before, out := picture(t, g.a), snapshot(t, g.out, nil)
			ws := withMounts(t, policy, g.a, g.b)
			bind(t, g.out, mounted)
			for _, path := range []string{"x/mounted", "x/mounted/", "x"} {
				require.Error(t, ws.Remove(path, workspace.RemoveOptions{}), path)
			}
			if policy == workspace.AnyMounts {
				return
			}
			for _, path := range []string{"x/mounted/secret", "x/mounted/new", "x/mounted/e",
				"x/mounted/e/f", "x/mounted/../new", "x/mounted"} {
				for name, change := range changes {
					require.ErrorContains(t, change(ws, path), "mounted there", "%s %s", name, path)
				}
				_, err := ws.ReadText(t.Context(), path, workspace.TextOptions{})
				require.ErrorContains(t, err, "mounted there", path)
			}
			_, err := ws.Readlink("x/mounted/secret")
			require.ErrorContains(t, err, "mounted there")
			require.Equal(t, out, snapshot(t, g.out, nil))
			require.NoError(t, unix.Unmount(mounted, unix.MNT_DETACH))
			require.Equal(t, before, picture(t, g.a))
		})
	}
}

// A file cannot be renamed from one mount to another, even within a root.
//
// Clause C7.
func TestRenameBetweenMounts(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	g := newGrounds(t)
	mkdir(t, filepath.Join(g.a, "node_modules"))
	mount(t, "tmpfs", filepath.Join(g.a, "node_modules"), "tmpfs", 0)
	ws := withMounts(t, workspace.ExistingMounts, g.a, g.b)
	write(t, filepath.Join(g.a, "node_modules/p/index.js"), "text")
	err := ws.Rename("node_modules/p", "../B/p", workspace.Ref{}, workspace.Ref{})
	require.ErrorIs(t, err, unix.EXDEV)
	err = ws.Rename("node_modules/p", "node_modules/q", workspace.Ref{}, workspace.Ref{})
	require.NoError(t, err)
	requireRead(t, ws, "node_modules/q/index.js", "text", 0, "node_modules/q/index.js")
	err = ws.Rename("node_modules", "moved", workspace.Ref{}, workspace.Ref{})
	require.ErrorIs(t, err, unix.EBUSY)
	require.ErrorIs(t, ws.Remove("node_modules", workspace.RemoveOptions{}), unix.EBUSY)
}

// A denied directory is no root either if it is mounted somewhere else.
func deniedRootUnderAnotherName(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			g := newGrounds(t)
			alias := mkdir(t, filepath.Join(g.b, "alias"))
			bind(t, g.out, alias)
			deny, err := workspace.ParseDir(g.out)
			require.NoError(t, err)
			roots, err := workspace.NewRoots(g.a, []string{alias})
			require.NoError(t, err)
			_, err = workspace.Open(t.Context(), roots, workspace.Options{
				Mounts: policy, Policy: workspace.Policy{Deny: []workspace.Dir{deny}}})
			require.Equal(t, workspace.RootErrors{{Root: 1, Path: alias,
				Reason: workspace.ReasonDenied, Detail: g.out}}, rootErrors(err))
		})
	}
}
