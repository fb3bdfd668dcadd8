package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/roottest"
	"github.com/acp-agent/acp-agent/internal/test/terminal"
)

// reach says what it reaches: a file in $own, a terminal, shared memory.
const reach = `cat "$own/secret" /proc/self/root"$own/secret" /proc/$PPID/root"$own/secret" && echo read
cd "$own" && cat secret && echo read
(exec 4<"$own/secret") && echo lockable
(exec 3<>"$terminal" && echo typed >&3) && echo wrote
grep -q " $memory " /proc/sysvipc/shm && echo attached
echo ended`

// prepareReach returns a command that runs reach, and the directory own of it.
func prepareReach(t *testing.T) (c process.Command, own string) {
	t.Helper()
	own = filepath.Join(t.TempDir(), "own")
	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(own, "secret"), []byte("SECRET"), 0o600))
	var others []*os.File // numbers that a child with terminals of its own does not use
	for range 4 {
		person, program, err := terminal.Open()
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = person.Close(), program.Close() })
		others = append(others, program)
	}
	memory, err := unix.SysvShmGet(0, 4096, 0o600|unix.IPC_CREAT)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(memory, unix.IPC_RMID, nil) })
	return process.Command{Path: "/bin/sh", Args: []string{"-c", reach}, Env: []string{"own=" + own,
		"terminal=" + others[3].Name(), fmt.Sprint("memory=", memory), "TMPDIR=" + t.TempDir()}}, own
}

// reached returns what c reached.
func reached(t *testing.T, c process.Command) string {
	t.Helper()
	out, err := process.Output(t.Context(), c)
	require.NoError(t, err)
	return strings.Join(strings.Fields(string(out)), " ")
}

// Where there are namespaces, a command finds acp-agent's own directory empty, even in a folder
// that it is granted, and neither terminals nor shared memory of others.
//
// Clause X8.
func TestCommandsFindOwnFilesHidden(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		c, own := prepareReach(t)
		require.Equal(t, "SECRETSECRETSECRETread SECRETread lockable wrote attached ended", reached(t, c))
		if level == sandbox.ProxyPort && !proctest.Separable() {
			return // an ordinary user has no namespaces
		}
		for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			s := hostSettings(t, level, "example.com")
			s.Mode, s.Hidden = mode, []string{own, filepath.Join(own, "missing")}
			folder := filepath.Dir(own)
			restricted := restrict(t, c, s, roottest.Open(t, folder).Root(0))
			require.Equal(t, "ended", reached(t, restricted), mode)

			s.Write = []string{own}
			restricted = restrict(t, c, s)
			require.Contains(t, reached(t, restricted), "SECRET", "what is granted is not hidden")
		}
	})
}

// A directory is hidden from a command that starts in it too, as one of an editor's terminal can if
// its working directory is exchanged for a link.
//
// Clause X8.
func TestWorkingDirectoryIsHidden(t *testing.T) {
	bothLevels(t, func(t *testing.T, level sandbox.Network) {
		if level == sandbox.ProxyPort && !proctest.Separable() {
			return // an ordinary user has no namespaces
		}
		_, own := prepareReach(t)
		s := hostSettings(t, level, "example.com")
		s.Hidden = []string{own}
		folder := filepath.Dir(own)
		c := process.Command{Path: "/bin/sh", Env: []string{"TMPDIR=" + t.TempDir()},
			Args: []string{"-c", "cat secret; cat ../own/secret; echo ended"}}
		t.Chdir(own)
		for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
			s.Mode = mode
			restricted := restrict(t, c, s, roottest.Open(t, folder).Root(0))
			require.Equal(t, "ended", reached(t, restricted), mode)
		}
	})
}

// handle names a directory without a path.
type handle struct {
	Type         int32
	Bytes        []byte
	Folder, File string // a folder on the same file system, and a file in the directory
}

// openHandle prints the file in the directory of a handle.
func openHandle() int {
	var h handle
	if err := json.Unmarshal([]byte(os.Getenv("TEST_HANDLE")), &h); err != nil {
		return 1
	}
	mount, err := unix.Open(h.Folder, unix.O_DIRECTORY, 0)
	if err == nil {
		mount, err = unix.OpenByHandleAt(mount, unix.NewFileHandle(h.Type, h.Bytes), unix.O_DIRECTORY)
	}
	if err == nil {
		mount, err = unix.Openat(mount, h.File, unix.O_RDONLY, 0)
	}
	if err != nil {
		fmt.Print(err)
		return 0
	}
	text := make([]byte, 1<<10)
	n, _ := unix.Read(mount, text)
	fmt.Print(string(text[:max(n, 0)]))
	return 0
}

// Nothing that is mounted over a directory hides it from a process that opens it by its handle.
//
// Clause X8.
func TestRootOpensNoHandles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	_, own := prepareReach(t)
	known, _, err := unix.NameToHandleAt(unix.AT_FDCWD, own, 0)
	require.NoError(t, err)
	folder := filepath.Dir(own)
	text, err := json.Marshal(handle{known.Type(), known.Bytes(), folder, "secret"})
	require.NoError(t, err)
	c := self("open handle", "TEST_HANDLE="+string(text), "TMPDIR="+t.TempDir())
	if reached(t, c) != "SECRET" {
		t.Skip("needs CAP_DAC_READ_SEARCH")
	}
	for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
		s := sandbox.Settings{Mode: mode, Hidden: []string{own}}
		restricted := restrict(t, c, s, roottest.Open(t, folder).Root(0))
		require.Equal(t, "operation not permitted", reached(t, restricted), mode)
	}
}
