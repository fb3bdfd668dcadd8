//go:build linux || darwin

package containmenttest

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Stage is the tree of a case on disk. It is not safe for concurrent use.
type Stage struct {
	// Dir is the directory of the case, by its real path.
	Dir string

	c      Case
	before map[string]string // picture of it as it was set up
	now    map[string]string // and as it was last checked
	end    []func()
}

// Stage creates the tree of a case, as it is when the roots are opened.
func (c Case) Stage(t testing.TB) *Stage {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := &Stage{Dir: filepath.Join(dir, rand.Text()), c: c}
	require.NoError(t, os.Mkdir(s.Dir, 0o755))
	for _, line := range c.before {
		s.run(t, line)
	}
	return s
}

// Roots returns the roots, cwd first.
func (s *Stage) Roots() []string { return s.all(s.c.roots) }

// Denied returns the directories that the policy denies.
func (s *Stage) Denied() []string { return s.all(s.c.deny) }

// Open runs the commands of the case after "open". From then on nothing outside the roots may
// change.
func (s *Stage) Open(t testing.TB) {
	t.Helper()
	for _, line := range s.c.after {
		s.run(t, line)
	}
	s.before = Picture(t, s.Dir, nil)
	s.now = s.before
}

// Path returns the path of an attempt.
func (s *Stage) Path(a Attempt) string { return s.expand(a.path) }

// Within reports whether a path is in the directory of the case, by its text alone.
func (s *Stage) Within(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Roots()[0], path)
	}
	return within(s.Dir, filepath.Clean(path))
}

// RequireContained requires that everything outside the roots is unchanged, and that learned
// contains nothing from there.
func (s *Stage) RequireContained(t testing.TB, learned, said string) {
	t.Helper()
	require.NotContains(t, learned, "SECRET", said)
	s.now = Picture(t, s.Dir, nil)
	if !s.Changed() {
		return
	}
	require.Equal(t, s.outside(s.before), s.outside(s.now), "%s: something outside has changed", said)
}

// Changed reports whether anything in the tree had changed at the last RequireContained.
func (s *Stage) Changed() bool { return !maps.Equal(s.before, s.now) }

// Clear removes the tree.
func (s *Stage) Clear() {
	for _, end := range slices.Backward(s.end) {
		end()
	}
	s.end = nil
	_ = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, _ error) error {
		if d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(s.Dir)
}

// outside returns the part of a picture that is outside the granted directories.
func (s *Stage) outside(picture map[string]string) map[string]string {
	seen := maps.Clone(picture)
	maps.DeleteFunc(seen, func(path, _ string) bool {
		return slices.ContainsFunc(s.c.granted, func(dir string) bool { return within(dir, path) })
	})
	return seen
}

func within(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

var repeated = regexp.MustCompile(`\$\{([^*]*)\*([0-9]+)\}`)

// expand replaces $W by the directory of the case, and ${x*255} by as many x.
func (s *Stage) expand(text string) string {
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	return strings.ReplaceAll(text, "$W", s.Dir)
}

// in returns a path in the directory of the case.
func (s *Stage) in(path string) string { return filepath.Join(s.Dir, s.expand(path)) }

func (s *Stage) all(paths []string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = s.in(path)
	}
	return out
}

// run runs one command of a case.
func (s *Stage) run(t testing.TB, words []string) {
	t.Helper()
	command, args := words[0], words[1:]
	one := s.in(args[0])
	err := os.MkdirAll(filepath.Dir(one), 0o755)
	require.NoError(t, err)
	switch command {
	case "file":
		err = os.WriteFile(one, []byte(s.expand(args[1])), 0o644)
	case "dir":
		err = os.MkdirAll(one, 0o755)
	case "link": // link PATH TARGET
		err = os.Symlink(s.expand(args[1]), one)
	case "chain": // chain DIR N TARGET: links DIR/1 to DIR/N, each to the one before, the first to TARGET
		n, convErr := strconv.Atoi(args[1])
		require.NoError(t, convErr)
		require.NoError(t, os.MkdirAll(one, 0o755))
		for i, target := 1, s.expand(args[2]); i <= n && err == nil; i++ {
			err = os.Symlink(target, filepath.Join(one, strconv.Itoa(i)))
			target = strconv.Itoa(i)
		}
	case "hard": // hard PATH OTHER: gives the file OTHER the second name PATH
		err = os.Link(s.in(args[1]), one)
	case "fifo":
		err = unix.Mkfifo(one, 0o666)
	case "socket":
		s.listen(t, one)
	case "device":
		err = unix.Mknod(one, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
	case "chmod": // chmod PATH MODE
		mode, convErr := strconv.ParseUint(args[1], 8, 32)
		require.NoError(t, convErr)
		err = os.Chmod(one, os.FileMode(mode))
	case "rename":
		err = os.Rename(one, s.in(args[1]))
	case "remove":
		err = os.RemoveAll(one)
	default:
		require.Fail(t, "no such command", command)
	}
	require.NoError(t, err, "%v", words)
}

// listen creates a socket. Its path may be longer than the limit for sockets.
func (s *Stage) listen(t testing.TB, path string) {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	defer os.RemoveAll(short)
	socket, err := net.Listen("unix", filepath.Join(short, "s"))
	require.NoError(t, err)
	socket.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, os.Rename(filepath.Join(short, "s"), path))
	s.end = append(s.end, func() { _ = socket.Close() })
}

// Picture describes everything below dir except the directories but: inode, mode, time and content
// by path in dir. Compare pictures with [maps.Equal].
func Picture(t testing.TB, dir string, but []string) map[string]string {
	t.Helper()
	seen := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		if err != nil && d == nil || relErr != nil {
			return fmt.Errorf("looking at %s: %w", path, err)
		}
		if slices.Contains(but, rel) {
			return fs.SkipDir
		}
		info, infoErr := d.Info()
		if infoErr != nil {
			return infoErr
		}
		what := fmt.Sprint(inode(info), info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			seen[rel] = what + " -> " + target
			return err
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(path) // an unreadable file has no content
			what += " " + string(text)
		}
		seen[rel] = what
		return nil
	}))
	return seen
}

func inode(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ino
}
