package workspace_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
	nobody      = 65534
)

// aclEntry is an entry of an access control list.
type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// setACL sets an access control list: the permissions of the owner, a user, the group, the mask and
// everybody else.
func setACL(t *testing.T, path, name string, owner, user, group, mask, other uint16) {
	const none = 1<<32 - 1
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []aclEntry{{0x01, owner, none}, {0x02, user, nobody}, {0x04, group, none},
		{0x10, mask, none}, {0x20, other, none}} {
		raw = binary.LittleEndian.AppendUint16(raw, e.tag)
		raw = binary.LittleEndian.AppendUint16(raw, e.perm)
		raw = binary.LittleEndian.AppendUint32(raw, e.id)
	}
	err := unix.Setxattr(path, name, raw, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("this file system has no access control lists")
	}
	require.NoError(t, err)
}

// access describes who may access a file, and its other attributes.
func access(t *testing.T, path string) map[string]string {
	t.Helper()
	var stat unix.Stat_t
	require.NoError(t, unix.Lstat(path, &stat))
	seen := map[string]string{"mode": fs.FileMode(stat.Mode & 0o7777).String()}
	list := make([]byte, 4096)
	n, err := unix.Llistxattr(path, list)
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, 4096)
		n, err := unix.Lgetxattr(path, name, value)
		require.NoError(t, err)
		seen[name] = string(value[:n])
	}
	return seen
}

// onDiskAndInMemory runs a test in a directory on the disk and in one in memory.
func onDiskAndInMemory(t *testing.T, test func(t *testing.T, g grounds)) {
	t.Run("disk", func(t *testing.T) { test(t, newGrounds(t)) })
	t.Run("memory", func(t *testing.T) { test(t, newGroundsInMemory(t)) })
}

// Clause E2.
func TestWriteKeepsAccess(t *testing.T) {
	const r, w, none = 4, 6, 0
	for name, prepare := range map[string]func(t *testing.T, path string){
		"list, group without rights": func(t *testing.T, path string) {
			setACL(t, path, accessList, w, r, none, r, none)
		},
		"list, a user that may write": func(t *testing.T, path string) {
			setACL(t, path, accessList, w, w, none, w, none)
		},
		"list, a user without rights": func(t *testing.T, path string) {
			setACL(t, path, accessList, w, none, r, r, r)
		},
		"no list, but the directory gives one": func(t *testing.T, path string) {
			require.NoError(t, os.Chmod(path, 0o640))
			setACL(t, filepath.Dir(path), defaultList, w, w, w, w, w)
		},
		"other attributes": func(t *testing.T, path string) {
			err := unix.Setxattr(path, "user.origin", []byte("here"), 0)
			if errors.Is(err, unix.EOPNOTSUPP) {
				t.Skip("this file system has no attributes")
			}
			require.NoError(t, err)
			require.NoError(t, unix.Setxattr(path, "user.empty", nil, 0))
			require.NoError(t, unix.Setxattr(path, "user.long", make([]byte, 3000), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onDiskAndInMemory(t, func(t *testing.T, g grounds) {
				path := filepath.Join(g.a, "f")
				prepare(t, path)
				before := access(t, path)
				for _, o := range []workspace.WriteOptions{
					{}, {IfUnchanged: workspace.VersionOf([]byte("new"))}} {
					_, err := g.ws.WriteFile(t.Context(), "f", []byte("new"), o)
					require.NoError(t, err)
					require.Equal(t, before, access(t, path))
				}
			})
		})
	}
}

// As when a program writes to it, a file loses what lets programs run with other rights.
func TestWriteDropsPrivileges(t *testing.T) {
	g := newGrounds(t)
	path := filepath.Join(g.a, "f")
	require.NoError(t, os.Chmod(path, 0o755|fs.ModeSetuid))
	if os.Geteuid() == 0 {
		raw := binary.LittleEndian.AppendUint32(nil, 0x02000001)
		raw = append(raw, make([]byte, 16)...)
		raw[4] = 1
		require.NoError(t, unix.Setxattr(path, "security.capability", raw, 0))
	}
	_, err := put(g.ws, "f", "new")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"mode": fs.FileMode(0o755).String()}, access(t, path))
}

// A file that the user may not write is not replaced, although its directory is writable.
//
// Clause E2.
func TestWriteNeedsTheRightToWrite(t *testing.T) {
	const inside = "WORKSPACE_TEST_DIR"
	if os.Getenv(inside) == "" {
		dir := openToAll(t)
		for _, name := range []string{"theirs", "denied"} {
			write(t, filepath.Join(dir, name), "x")
			require.NoError(t, os.Chown(filepath.Join(dir, name), 1234, 4321))
		}
		setACL(t, filepath.Join(dir, "denied"), accessList, 6, 4, 6, 6, 6)
		if !asUser(t, dir) {
			t.Skip("only root can make a file of somebody else's")
		}
		for _, name := range []string{"theirs", "denied"} {
			var stat unix.Stat_t
			require.NoError(t, unix.Stat(filepath.Join(dir, name), &stat))
			require.EqualValues(t, 1234, stat.Uid)
		}
		return
	}
	ws := open(t, os.Getenv(inside))
	for _, name := range []string{"theirs", "denied"} {
		_, err := ws.WriteTarget(name)
		require.ErrorIs(t, err, fs.ErrPermission, name)
		_, err = ws.WriteFile(t.Context(), name, []byte("y"), workspace.WriteOptions{MayLose: 0xff})
		require.ErrorIs(t, err, fs.ErrPermission, name)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError)
		require.Equal(t, name, pathError.Path)
		requireRead(t, ws, name, "x", 0, name)
	}
}

// The owner and the group of a file that the user may write are not given up unless that is
// permitted, and then nobody gets more rights.
//
// Clause E2.
func TestWriteLosesOnlyWhatItMay(t *testing.T) {
	const inside = "WORKSPACE_TEST_DIR"
	all := workspace.LosesOwner | workspace.LosesGroup
	if os.Getenv(inside) == "" {
		dir := openToAll(t)
		for name, mode := range map[string]fs.FileMode{"plain": 0o666, "group": 0o626, "list": 0o666} {
			write(t, filepath.Join(dir, name), "x")
			require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
		}
		setACL(t, filepath.Join(dir, "list"), accessList, 6, 6, 6, 6, 4)
		if !asUser(t, dir) {
			t.Skip("only root can make a file of somebody else's")
		}
		require.Equal(t, fs.FileMode(0o666).String(), access(t, filepath.Join(dir, "plain"))["mode"])
		require.Equal(t, fs.FileMode(0o622).String(), access(t, filepath.Join(dir, "group"))["mode"])
		require.Equal(t, map[string]string{"mode": fs.FileMode(0o644).String()},
			access(t, filepath.Join(dir, "list")))
		return
	}
	ws := open(t, os.Getenv(inside))
	for _, name := range []string{"plain", "group", "list"} {
		predicted, err := ws.WriteLosses(name)
		require.NoError(t, err)
		require.Equal(t, all, predicted)
		all := all
		if name == "list" {
			all |= workspace.LosesACL // which is not read before
		}
		var loss *workspace.LossError
		for _, some := range []workspace.Losses{0, workspace.LosesOwner, workspace.LosesACL} {
			_, err = ws.WriteFile(t.Context(), name, []byte("y"),
				workspace.WriteOptions{MayLose: some})
			require.ErrorAs(t, err, &loss)
			require.Equal(t, all&^some, loss.Losses)
		}
		requireRead(t, ws, name, "x", 0, name)
		_, err = ws.WriteFile(t.Context(), name, []byte("y"), workspace.WriteOptions{MayLose: all})
		require.NoError(t, err)
		predicted, err = ws.WriteLosses(name)
		require.NoError(t, err)
		require.Zero(t, predicted, "it is the user's own now")
	}
	for path := range picture(t, os.Getenv(inside)) {
		require.NotContains(t, path, ".acp-agent-")
	}
}

// Clause E2.
func TestWriteLossesOfLinks(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, os.Link(filepath.Join(g.a, "f"), filepath.Join(g.a, "second")))
	for path, want := range map[string]workspace.Losses{
		"second": workspace.LosesLinks, "d/f2": 0, "new": 0} {
		if path == "d/f2" {
			write(t, filepath.Join(g.a, path), "")
		}
		losses, err := g.ws.WriteLosses(path)
		require.NoError(t, err)
		require.Equal(t, want, losses, path)
	}
	require.Equal(t, "will not keep its owner and group and has other names (hard links) that keep "+
		"the old content", (workspace.LosesOwner | workspace.LosesGroup | workspace.LosesLinks).String())
}

// A file that the system protects from changes is not replaced.
//
// Clause E2.
func TestWriteImmutableFile(t *testing.T) {
	g := newGrounds(t)
	path := filepath.Join(g.a, "f")
	const immutable = 0x10
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skip("files cannot be made immutable here:", err)
	}
	defer unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0)
	before := picture(t, g.dir)
	_, err = put(g.ws, "f", "WRITTEN")
	require.Error(t, err)
	require.Equal(t, before, picture(t, g.dir))
}

// Where the system does not let permissions be set, as on file systems without any, a file is
// replaced all the same if that does not widen them.
//
// Clause E2.
func TestWriteWherePermissionsCannotBeSet(t *testing.T) {
	const inside = "WORKSPACE_TEST_CHMOD"
	if os.Getenv(inside) == "" {
		again := exec.CommandContext(t.Context(), proctest.Executable(), "-test.run=^"+t.Name()+"$",
			"-test.count=1", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		output, err := again.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), "--- PASS: "+t.Name())
		return
	}
	require.NoError(t, proctest.Deny(unix.SYS_FCHMOD, syscall.EPERM))
	for path, perm := range map[string]fs.FileMode{"f": 0o644, "program": 0o755} {
		g := newGrounds(t)
		at := filepath.Join(g.a, path)
		write(t, at, "old")
		require.NoError(t, os.Chmod(at, perm))
		_, err := put(g.ws, path, "new")
		require.NoError(t, err)
		info, err := os.Stat(at)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&^perm, "%v", info.Mode())
		require.Equal(t, perm&0o700, info.Mode().Perm()&0o700)
	}
}
