package workspace_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/fusetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/workspace"
)

// foreign replaces a file again and again, as a program does that knows no locks, and returns what
// it has replaced.
type foreign struct {
	path     string
	replaced []string
	err      error
}

// run writes n texts.
func (f *foreign) run(n int) {
	next := f.path + ".next"
	for i := range n {
		if f.err = os.WriteFile(next, []byte("foreign "+strconv.Itoa(i)), 0o600); f.err != nil {
			return
		}
		f.err = unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, f.path, unix.RENAME_EXCHANGE)
		if f.err != nil {
			return
		}
		was, err := os.ReadFile(next)
		if f.err = err; err != nil {
			return
		}
		f.replaced = append(f.replaced, string(was))
	}
}

// Another program replaces a file all the time. A write that succeeds has replaced the version that
// it expected, and nothing that the program wrote is lost.
//
// Clause E1.
func TestWhatOtherProgramsWriteIsNotLost(t *testing.T) {
	for name, g := range map[string]func(*testing.T) grounds{
		"on disk": newGrounds, "in memory": newGroundsInMemory,
	} {
		t.Run(name, func(t *testing.T) {
			g := g(t)
			path := filepath.Join(g.a, "f")
			other := &foreign{path: path}
			done, writes := make(chan struct{}), volume.Of(500, 3000)
			go func() { defer close(done); other.run(writes) }()
			replaced := map[string]bool{}
			tries := 0
			for running := true; running; tries++ {
				select {
				case <-done:
					running = false
				default:
				}
				was, _, err := read(g.ws, "f")
				require.NoError(t, err)
				_, err = g.ws.WriteFile(t.Context(), "f", []byte("own "+strconv.Itoa(tries)),
					workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte(was))})
				if err != nil {
					require.False(t, errors.Is(err, os.ErrNotExist), "%v", err)
					continue
				}
				require.False(t, replaced[was], "%s is replaced twice", was)
				replaced[was] = true
			}
			<-done
			require.NoError(t, other.err)
			t.Logf("%d of %d writes succeeded", len(replaced), tries)
			seen := picture(t, g.a)
			known := slices.Concat(slices.Collect(maps.Keys(replaced)), other.replaced,
				slices.Collect(maps.Values(seen)))
			for i := range writes {
				require.Contains(t, known, "foreign "+strconv.Itoa(i))
			}
		})
	}
}

// Who watches a directory is told last of all that there is a new file, not that the old one has
// gone.
func TestWatchersSeeTheNewFile(t *testing.T) {
	g := newGrounds(t)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, g.a, unix.IN_ALL_EVENTS)
	require.NoError(t, err)
	_, err = g.ws.WriteFile(t.Context(), "f", []byte("new"),
		workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte("A/f"))})
	require.NoError(t, err)
	buf := make([]byte, 64<<10)
	n, err := unix.Read(fd, buf)
	require.NoError(t, err)
	var last uint32
	for at := 0; at < n; {
		mask := binary.NativeEndian.Uint32(buf[at+4:])
		length := int(binary.NativeEndian.Uint32(buf[at+12:]))
		name := strings.TrimRight(string(buf[at+16:at+16+length]), "\x00")
		if name == "f" && mask&(unix.IN_OPEN|unix.IN_ACCESS|unix.IN_CLOSE_NOWRITE) == 0 {
			last = mask
		}
		at += 16 + length
	}
	require.EqualValues(t, unix.IN_MOVED_TO, last)
}

// A write waits while another process has locked the file.
//
// Clause E1.
func TestLockOfAnotherProcess(t *testing.T) {
	g := newGrounds(t)
	f, err := os.Open(filepath.Join(g.a, "f"))
	require.NoError(t, err)
	require.NoError(t, dirfd.TryLock(f))
	before := openFiles(t)
	written := make(chan error)
	go func() {
		_, err := put(g.ws, "f", "new")
		written <- err
	}()
	require.ErrorIs(t, dirfd.TryLock(reopen(t, f)), dirfd.ErrLocked)
	require.Equal(t, "A/f", picture(t, g.dir)["A/f"])
	time.Sleep(20 * time.Millisecond) // in which it tries again
	require.NoError(t, f.Close())
	require.NoError(t, <-written)
	require.Equal(t, "new", picture(t, g.dir)["A/f"])
	require.Equal(t, before, openFiles(t), "one was closed, and one opened again")
}

func reopen(t *testing.T, f *os.File) *os.File {
	again, err := os.Open(f.Name())
	require.NoError(t, err)
	t.Cleanup(func() { _ = again.Close() })
	return again
}

var killedWrites = volume.Of(12, 40)

// A process is killed at random moments while it writes a file and creates others. They are whole,
// and what it leaves behind, if anything, is what the file was before.
//
// Clause E1.
func TestKilledWhileWriting(t *testing.T) {
	const inside = "WORKSPACE_TEST_KILLED"
	contents := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 300_000)}
	if dir := os.Getenv(inside); dir != "" {
		ws := open(t, dir)
		for i := 0; ; i++ {
			was, _, err := read(ws, "f")
			require.NoError(t, err)
			next := contents[0]
			if was == next {
				next = contents[1]
			}
			_, err = ws.WriteFile(t.Context(), "f", []byte(next),
				workspace.WriteOptions{IfUnchanged: workspace.VersionOf([]byte(was))})
			require.NoError(t, err)
			_, err = put(ws, "new", next)
			require.NoError(t, err)
			require.NoError(t, ws.Remove("new", workspace.RemoveOptions{}))
		}
	}
	dir := realDir(t)
	write(t, filepath.Join(dir, "f"), contents[0])
	left := 0
	for range killedWrites {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		c.Env = append(os.Environ(), inside+"="+dir)
		require.NoError(t, c.Start())
		time.Sleep(50*time.Millisecond + rand.N(20*time.Millisecond))
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()
		for path, text := range picture(t, dir) {
			if path == "." {
				continue
			}
			require.Contains(t, contents, text, path)
			if strings.HasPrefix(path, ".acp-agent-") {
				left++
			}
		}
	}
	t.Logf("%d kills left %d files", killedWrites, left)
}

// What is not certainly a draft of a process that has ended stays.
//
// Clause E1.
func TestDraftsThatWereLeft(t *testing.T) {
	for what, c := range map[string]struct {
		name, content string
		age           time.Duration
		locked, stays bool
	}{
		"old draft":                     {name: workspace.TemporaryName(), content: "ne", age: 25 * time.Hour},
		"new draft":                     {name: workspace.TemporaryName(), content: "ne", stays: true},
		"old draft of a process":        {name: workspace.TemporaryName(), content: "ne", age: 25 * time.Hour, locked: true, stays: true},
		"what was to change places":     {name: workspace.TemporaryName() + "-", content: "old", age: 25 * time.Hour, stays: true},
		"file with a name that is like": {name: ".acp-agent-notes", content: "x", age: 25 * time.Hour, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			dir := realDir(t)
			path := filepath.Join(dir, c.name)
			write(t, path, c.content)
			then := time.Now().Add(-c.age)
			require.NoError(t, os.Chtimes(path, then, then))
			if c.locked {
				f, err := os.Open(path)
				require.NoError(t, err)
				defer f.Close()
				require.NoError(t, dirfd.TryLock(f))
			}
			_, err := put(open(t, dir), "f", "one")
			require.NoError(t, err)
			if c.stays {
				require.FileExists(t, path)
			} else {
				require.NoFileExists(t, path)
			}
		})
	}
}

// What a policy allows or denies it allows or denies in every spelling that the disk takes for the
// same directory. Such roots have one real path, and so the first owns both.
//
// Clause A6.
func TestPolicyOfOtherSpellings(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	disk := newGrounds(t).a
	fusetest.Mount(t, disk, "Team/\u00c4pp/keys", "Other")
	in := func(path string) string { return filepath.Join(disk, filepath.FromSlash(path)) }
	teams := []string{"Team", "TEAM", "team"}
	apps := []string{"Team/\u00c4pp", "team/a\u0308pp", "TEAM/A\u0308PP"}
	for _, team := range teams {
		for _, only := range []bool{false, true} {
			o := workspace.Options{Policy: workspace.Policy{
				Allow: dirs(t, in(team)), OnlyAllowed: only}}
			for _, app := range apps {
				openWith(t, o, in(app))
			}
			_, err := workspace.Open(t.Context(), mustRoots(t, in("oTHER")), o)
			require.ErrorContains(t, err, "in none of the folders that you may open", team)
		}
	}
	for _, app := range apps {
		for _, keys := range []string{"Team/\u00c4pp/keys", "team/a\u0308PP/KEYS"} {
			o := workspace.Options{Policy: workspace.Policy{Deny: dirs(t, in(keys))}}
			ws := openWith(t, o, in(app))
			var denied *workspace.DeniedError
			for _, path := range []string{"keys", "Keys/x", in(app + "/KEYS")} {
				_, err := ws.Lstat(path)
				require.ErrorAs(t, err, &denied, "%q in %q", path, app)
			}
			_, err := workspace.Open(t.Context(), mustRoots(t, in("TEAM/\u00c4PP/Keys")), o)
			require.Error(t, err)
		}
	}
	ws := openWith(t, workspace.Options{}, in(apps[0]), in(apps[1]))
	require.Equal(t, ws.Root(0).Real, ws.Root(1).Real)
	require.Equal(t, in(apps[1]), ws.Root(1).Dir.String())
}
