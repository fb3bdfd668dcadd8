package worktree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/test/containmenttest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// stopping is a git that stops for ever before its nth command once the file begin exists. With
// "half" it kills the command in the middle instead, and then stops.
const stopping = `#!/bin/sh
test -e "$STAGE/begin" || exec "$REAL_GIT" "$@"
calls=0
if test -e "$TMPDIR/calls"; then read calls <"$TMPDIR/calls"; fi
echo $((calls + 1)) >"$TMPDIR/calls"
test $((calls + 1)) = "$STOP_AT" || exec "$REAL_GIT" "$@"
if test "$HALF"; then
	"$REAL_GIT" "$@" &
	sleep 0.0$HALF
	kill -9 $!
fi
echo $$ >"$TMPDIR/pid"
mv "$TMPDIR/pid" "$TMPDIR/stopped"
exec sleep 1000
`

// TestProcessToKill is the process that TestKilled kills.
func TestProcessToKill(t *testing.T) {
	dir := os.Getenv("STAGE")
	if dir == "" {
		t.Skip("TestKilled starts it")
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	registry := worktree.NewRegistry(in("state"), in("trees"))
	if os.Getenv("REMOVE") != "" {
		require.NoError(t, os.WriteFile(in("begin"), nil, 0o600))
		_, err := registry.Remove(t.Context(), "x")
		require.NoError(t, err)
		return
	}
	if os.Getenv("COMMIT") != "" {
		task, err := registry.Find("x")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(in("begin"), nil, 0o600))
		_, err = task.Commit(t.Context(), "work")
		require.NoError(t, err)
		return
	}
	roots, err := workspace.NewRoots(in("first"), []string{in("second")})
	require.NoError(t, err)
	p, err := registry.Plan(t.Context(), "x", roots, worktree.Options{Copy: []string{".env"}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in("begin"), nil, 0o600))
	_, err = p.Make(t.Context())
	require.NoError(t, err)
}

// runUntil runs the process until its nth command of git, and kills it there with the command. It
// reports whether there was such a command.
func (s *stage) runUntil(n int, env ...string) bool {
	s.t.Helper()
	git, err := exec.LookPath("git")
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.folder("bin"), "git"), []byte(stopping), 0o700))
	tmp := s.folder("tmp")
	cmd := exec.CommandContext(s.t.Context(), os.Args[0], "-test.run=^TestProcessToKill$", "-test.count=1")
	cmd.Env = append(append(os.Environ(), "STAGE="+s.dir, "TMPDIR="+tmp, "REAL_GIT="+git, fmt.Sprint("STOP_AT=", n),
		"PATH="+s.path("bin")+":"+os.Getenv("PATH")), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(s.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { require.NoError(s.t, os.RemoveAll(tmp)); require.NoError(s.t, os.Remove(s.path("begin"))) }()
	for deadline := time.Now().Add(volume.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			require.NoError(s.t, err, said.String())
			return false
		default:
		}
		if _, err := os.Stat(filepath.Join(tmp, "stopped")); err == nil {
			break
		}
	}
	stopped, err := os.ReadFile(filepath.Join(tmp, "stopped"))
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Process.Kill())
	<-ended
	command, err := strconv.Atoi(strings.TrimSpace(string(stopped)))
	require.NoError(s.t, err)
	_ = syscall.Kill(command, syscall.SIGKILL) // it may have ended with its parent
	require.Eventually(s.t, func() bool {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", command))
		return err != nil
	}, volume.Patience, time.Millisecond, "the command uses the folder")
	return true
}

// changed returns the names of files that are no longer as before, but for those that match.
func (s *stage) changed(before map[string]string, allowed string) (names []string) {
	now := s.contents(s.dir)
	for name := range now {
		if content, was := before[name]; !was || content != now[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, is := now[name]; !is {
			names = append(names, name)
		}
	}
	match := regexp.MustCompile(allowed).MatchString
	return slices.DeleteFunc(names, match)
}

// twoRepositories makes repositories of which the first has an ignored file, and the second many.
func (s *stage) twoRepositories() []string {
	first := s.plant("ignoring", "first", func() {
		s.initialize("first")
		s.write("first/.gitignore", ".env")
		s.git("first", "add", ".")
		s.git("first", "commit", "-q", "-m", "more")
		s.write("first/.env", "KEY")
	})
	second := s.plant("large", "second", func() {
		s.initialize("second")
		for n := range 100 {
			s.write(fmt.Sprintf("second/many/%d", n), strings.Repeat("x", n))
		}
		s.git("second", "add", ".")
		s.git("second", "commit", "-q", "-m", "more")
	})
	return []string{first, second}
}

// A process that is killed while it makes worktrees leaves what the list names, and what can be
// removed and made again.
//
// Clause G1.
func TestKilledWhileMaking(t *testing.T) {
	for n := 1; ; n += volume.Of(3, 1) {
		half := ""
		if n%4 == 0 || n%4 == 3 {
			half = fmt.Sprint(n % 10)
		}
		s := newStage(t)
		folders := s.twoRepositories()
		before := s.contents(s.dir)
		if !s.runUntil(n, "HALF="+half) {
			require.Greater(t, n, 10)
			return
		}
		all := s.tasks()
		require.Len(t, all, 1)
		require.Equal(t, worktree.HalfMade, all[0].State)
		require.NoDirExists(t, s.path("trees/x"), "nobody works in a half made worktree")
		_, err := s.plan("x", nil, folders...)
		require.ErrorContains(t, err, "run acp-agent worktree remove x")
		_, err = s.registry.Remove(t.Context(), "x")
		require.NoError(t, err, "killed before command %d", n)
		if half != "" { // git may be killed while it makes the branch, and then names a lock to the user
			_ = os.Remove(s.path("second/.git/refs/heads/x.lock"))
			_ = os.Remove(s.path("second/.git/logs/refs/heads/x"))
		}
		require.Empty(t, s.changed(before, "^bin/"))
		s.make("x", folders...) // the branches are gone
	}
}

// A process that is killed while it removes worktrees has lost nothing, and they can be removed and
// made again.
//
// Clause G2.
func TestKilledWhileRemoving(t *testing.T) {
	killed := map[worktree.State]int{}
	s := newStage(t)
	folders := s.twoRepositories()
	before := s.contents(s.dir)
	options := worktree.Options{Copy: []string{".env"}}
	makeTrees := func() {
		p, err := s.registry.Plan(t.Context(), "x", rootsOf(t, folders), options)
		require.NoError(t, err)
		_, err = p.Make(t.Context())
		require.NoError(t, err)
		options.Existing = true
	}
	makeTrees()
	for n := 1; s.runUntil(n, "REMOVE=1"); n += volume.Of(9, 1) {
		all := s.tasks()
		require.Len(t, all, 1)
		killed[all[0].State]++
		if aside := s.path("trees/.removing.x/first"); n%2 == 0 {
			if _, err := os.Stat(aside); err == nil { // what came in between is not lost
				require.NoError(t, os.WriteFile(aside+"/new.txt", nil, 0o600))
				_, err = s.registry.Remove(t.Context(), "x")
				require.ErrorContains(t, err, "1 uncommitted change")
				require.NoError(t, os.Remove(s.path("trees/x/first/new.txt")))
			}
		}
		_, err := s.registry.Remove(t.Context(), "x")
		require.NoError(t, err, "killed before command %d", n)
		require.Empty(t, s.changed(before, "^bin/|/refs/heads/x$"))
		require.NoDirExists(t, s.path("trees/x"))
		makeTrees()
	}
	require.Positive(t, killed[worktree.Complete])
	require.Positive(t, killed[worktree.HalfRemoved])
}

// What is made after the first look is not lost, and its folder gets its name back.
//
// Clause G2.
func TestChangeWhileRemoving(t *testing.T) {
	s := newStage(t)
	s.make("x", s.repository("app"))
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	aside := s.path("trees/.removing.x/app")
	script := s.write("bin/git", "#!/bin/sh\ntest ! -d "+aside+" || : >"+aside+"/new.txt\nexec "+git+` "$@"`)
	t.Setenv("PATH", filepath.Dir(script)+":"+os.Getenv("PATH"))
	_, err = s.registry.Remove(t.Context(), "x")
	require.ErrorContains(t, err, "1 uncommitted change")
	require.FileExists(t, s.path("trees/x/app/new.txt"))
}

// A disk that becomes full, wherever that happens, leaves everything as it was.
//
// Clause G1.
func TestFullDisk(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	for _, full := range []string{"trees", "second", "state"} {
		s := newStage(t)
		require.NoError(t, unix.Mount("tmpfs", s.folder(full), "tmpfs", 0, "size=8m"))
		folders := s.twoRepositories()
		failed := 0
		for pages := 0; ; pages += 1 + pages/volume.Of(1, 2) {
			before := s.contents(s.dir)
			s.fill(full, pages)
			p, err := s.plan("x", []string{".env"}, folders...)
			require.NoError(t, err)
			_, err = p.Make(t.Context())
			require.NoError(t, os.Remove(s.path(full, "filler")))
			if err == nil {
				break
			}
			failed++
			require.NotContains(t, err.Error(), "undone", pages)
			// Git leaves an empty log of a branch that it could not make.
			require.Empty(t, s.changed(before, `^second/\.git/logs/refs/heads/x$`), pages)
		}
		require.Positive(t, failed, full)
		require.NoError(t, unix.Unmount(s.path(full), unix.MNT_DETACH))
	}
}

// fill fills a disk but for a number of pages.
func (s *stage) fill(disk string, pages int) {
	var free unix.Statfs_t
	require.NoError(s.t, unix.Statfs(s.path(disk), &free))
	require.NoError(s.t, os.WriteFile(s.path(disk, "filler"), make([]byte, max(0, int(free.Bavail)-pages)*4096), 0o600))
}

// A repository on a disk that cannot be written is refused before anything else is made.
func TestReadOnlyDisk(t *testing.T) {
	if !containmenttest.InNamespace(t) {
		return
	}
	s := newStage(t)
	first, second := s.repository("first"), s.repository("second")
	require.NoError(t, unix.Mount(second, second, "", unix.MS_BIND, ""))
	require.NoError(t, unix.Mount("", second, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	defer func() { require.NoError(t, unix.Unmount(second, unix.MNT_DETACH)) }()
	before := s.contents(s.dir)
	p, err := s.plan("x", nil, first, second)
	require.NoError(t, err)
	_, err = p.Make(t.Context())
	require.ErrorContains(t, err, "Read-only file system")
	require.ErrorContains(t, err, second)
	require.NotContains(t, err.Error(), "undone")
	require.Empty(t, s.changed(before, "^$"))
}
