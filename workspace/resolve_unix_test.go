//go:build linux || darwin

package workspace_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C6.
func TestSpecialFiles(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "fifo"), 0o644))
	socket, err := net.Listen("unix", filepath.Join(g.b, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	special := map[string]string{"fifo": "fifo", "to-fifo": "fifo", "../B/socket": "socket",
		"to-socket": "socket"}
	link(t, filepath.Join(g.a, "fifo"), filepath.Join(g.a, "to-fifo"))
	link(t, filepath.Join(g.b, "socket"), filepath.Join(g.a, "to-socket"))
	if unix.Mknod(filepath.Join(g.a, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))) == nil {
		special["null"] = "device"
	}
	for path, kind := range special {
		for _, way := range []string{"Open", "Fs.Open"} {
			var refused *workspace.SpecialFileError
			require.ErrorAs(t, ways[way](g.ws, path), &refused, "%s %s", way, path)
			require.Equal(t, kind, refused.Kind)
		}
	}
}

// Clause C6.
func TestFifoAsRoot(t *testing.T) {
	fifo := filepath.Join(realDir(t), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o644))
	_, err := workspace.Open(t.Context(), mustRoots(t, fifo), workspace.Options{})
	require.Equal(t, workspace.RootErrors{{Path: fifo, Reason: workspace.ReasonNotDirectory}},
		rootErrors(err))
	dir := mustRoots(t, fifo).Cwd()
	require.Equal(t, dir, workspace.Real(dir))
}

// asUser runs the test again as an ordinary user if this process is root, which permissions do not
// stop. It reports whether it did.
func asUser(t *testing.T, dir string) bool {
	const inside = "WORKSPACE_TEST_DIR"
	if os.Geteuid() != 0 || os.Getenv(inside) != "" {
		return false
	}
	binary := filepath.Join(dir, "test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("running as root, and the test binary cannot be read to run it as an ordinary user:",
			err)
	}
	require.NoError(t, os.WriteFile(binary, self, 0o755))
	runAs(t, 65534, dir, binary, "-test.run=^"+t.Name()+"$", "-test.count=1")
	return true
}

func runAs(t *testing.T, uid uint32, dir string, argv ...string) {
	t.Helper()
	output, err := os.Create(filepath.Join(dir, "output"))
	require.NoError(t, err)
	defer output.Close()
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: dir,
		Env: []string{"WORKSPACE_TEST_DIR=" + dir, "TMPDIR=" + dir,
			"GORACE=" + os.Getenv("GORACE")},
		Files: []*os.File{nil, output, output},
		Sys:   &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}},
	})
	require.NoError(t, err)
	state, err := process.Wait()
	require.NoError(t, err)
	said, _ := os.ReadFile(output.Name())
	require.True(t, state.Success(), "%s", said)
	require.Contains(t, string(said), "PASS")
}

// openToAll returns a new directory that every user may reach and write to.
func openToAll(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "workspace")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

// Clause A6.
func TestUnreadableRoots(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	dir := realDir(t)
	closed, unsearchable := mkdir(t, filepath.Join(dir, "closed")), mkdir(t,
		filepath.Join(dir, "unsearchable"))
	beyond := mkdir(t, filepath.Join(closed, "beyond"))
	require.NoError(t, os.Chmod(closed, 0))
	require.NoError(t, os.Chmod(unsearchable, 0o444))
	defer os.Chmod(closed, 0o755)
	_, err := workspace.Open(t.Context(), mustRoots(t, dir, closed, unsearchable, beyond),
		workspace.Options{})
	var want workspace.RootErrors
	for i, path := range []string{closed, unsearchable, beyond} {
		want = append(want, workspace.RootError{Root: 1 + i, Path: path,
			Reason: workspace.ReasonUnreadable, Detail: "permission denied"})
	}
	require.Equal(t, want, rootErrors(err))
}

// Clause C6.
func TestPermissions(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	require.NoError(t, os.Chmod(filepath.Join(g.a, "f"), 0))
	require.NoError(t, os.Chmod(filepath.Join(g.b, "d"), 0))
	defer os.Chmod(filepath.Join(g.b, "d"), 0o755)
	for _, path := range []string{"f", "../B/d/f"} {
		_, err := g.ws.Open(path)
		require.ErrorIs(t, err, fs.ErrPermission, path)
	}
	info, err := g.ws.Stat("f")
	require.NoError(t, err, "describing a file needs no permission to read it")
	require.EqualValues(t, len("A/f"), info.Size())
}

// Clause C6.
func TestWalkReportsUnreadable(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	dir := realDir(t)
	write(t, filepath.Join(dir, "closed/f"), "")
	write(t, filepath.Join(dir, "open/f"), "")
	write(t, filepath.Join(dir, "entered/f"), "entered")
	require.NoError(t, os.Chmod(filepath.Join(dir, "closed"), 0))
	require.NoError(t, os.Chmod(filepath.Join(dir, "entered"), 0o111))
	defer os.Chmod(filepath.Join(dir, "closed"), 0o755)
	defer os.Chmod(filepath.Join(dir, "entered"), 0o755)
	ws := open(t, dir)
	require.Equal(t, []string{"! closed", "! entered", "open/f"},
		walkFiles(t, ws, ".", workspace.WalkOptions{}))
	if runtime.GOOS != "linux" {
		return // elsewhere a directory is held as one that can be read
	}
	requireRead(t, ws, "entered/f", "entered", 0, "entered/f")
	d, err := ws.OpenDir("entered")
	require.NoError(t, err, "as the system does, what cannot be listed can be entered")
	defer d.Close()
	f, err := d.Open("f")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A FIFO that takes the place of a file after it was listed may be opened for a moment, but nothing
// is read from it.
//
// Clause C6.
func TestNothingIsReadFromASwappedFIFO(t *testing.T) {
	top := realDir(t)
	path := filepath.Join(top, "file")
	write(t, path, "text")
	d := openTop(t, open(t, top))
	file := workspace.Entry{Name: "file"}
	_, _, err := d.ReadFile(file, nil, 100)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	fifo, err := os.OpenFile(path, os.O_RDWR, 0) // Linux allows this; neither end waits
	require.NoError(t, err)
	defer fifo.Close()
	_, err = fifo.WriteString("kept")
	require.NoError(t, err)
	var special *workspace.SpecialFileError
	for _, kind := range []os.FileMode{0, os.ModeNamedPipe} {
		_, _, err = d.ReadFile(workspace.Entry{Name: "file", Type: kind}, nil, 100)
		require.ErrorAs(t, err, &special)
		require.Equal(t, "fifo", special.Kind)
	}
	_, err = d.Open("file")
	require.ErrorAs(t, err, &special)
	content := make([]byte, 10)
	n, err := fifo.Read(content)
	require.NoError(t, err)
	require.Equal(t, "kept", string(content[:n]))
}

// Clause C6.
func TestMoveAndRemoveSpecialFiles(t *testing.T) {
	g := newGrounds(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(g.a, "fifo"), 0o644))
	require.ErrorIs(t, moveOnto(g.ws, "fifo"), fs.ErrExist)
	err := g.ws.Rename("fifo", "../B/fifo", workspace.Ref{}, workspace.Ref{})
	require.NoError(t, err)
	require.NoError(t, g.ws.Remove("../B/fifo", workspace.RemoveOptions{}))
	require.NotContains(t, picture(t, g.b), "fifo")
}

// Clause C12.
func TestWriteKeepsPermissions(t *testing.T) {
	g := newGrounds(t)
	for _, perm := range []fs.FileMode{0o600, 0o644, 0o755, 0o200, 0o666} {
		path := filepath.Join(g.a, "f")
		require.NoError(t, os.Chmod(path, perm))
		_, err := put(g.ws, "f", "x")
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode())
	}
	require.NoError(t, os.WriteFile(filepath.Join(g.a, "like"), nil, 0o666))
	like, err := os.Stat(filepath.Join(g.a, "like"))
	require.NoError(t, err)
	_, err = put(g.ws, "new", "x")
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(g.a, "new"))
	require.NoError(t, err)
	require.Equal(t, like.Mode(), info.Mode(), "a new file is as any that the process makes")
}

// Clause C12.
func TestWriteKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	g := newGrounds(t)
	path := filepath.Join(g.a, "f")
	require.NoError(t, os.Chown(path, 1234, 4321))
	require.NoError(t, os.Chmod(path, 0o640))
	_, err := put(g.ws, "f", "x")
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	require.EqualValues(t, 1234, stat.Uid)
	require.EqualValues(t, 4321, stat.Gid)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
}

// Clause C6.
func TestWriteInReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 && asUser(t, openToAll(t)) {
		return
	}
	g := newGrounds(t)
	require.NoError(t, os.Chmod(g.a, 0o555))
	defer os.Chmod(g.a, 0o755)
	before := picture(t, g.dir)
	for _, path := range []string{"f", "new"} {
		_, err := put(g.ws, path, "x")
		require.ErrorIs(t, err, fs.ErrPermission)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError)
		require.Equal(t, path, pathError.Path, "not the temporary file's")
	}
	require.Equal(t, before, picture(t, g.dir))
}

// Clause C5.
func TestReadersSeeWholeFiles(t *testing.T) {
	g := newGrounds(t)
	done := make(chan error, 1)
	go func() {
		for range 200 {
			if _, err := g.ws.WriteFile(t.Context(), "f", []byte("the whole"),
				workspace.WriteOptions{}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		text, _, err := read(g.ws, "f")
		require.NoError(t, err)
		require.Contains(t, []string{"A/f", "the whole"}, text)
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
	}
}
