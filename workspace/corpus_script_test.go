//go:build linux || darwin

package workspace_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"
)

// script is a case of the corpus.
type script struct {
	roots, granted, deny []string
	root, linux          bool // whether only root can set it up, and only on Linux
	before, after        [][]string
	attempts             []attempt
}

// attempt is a path, and what is to come of it.
type attempt struct {
	line   int
	path   string
	class  string
	except map[string]string // verdicts by operation
}

func readScript(t *testing.T, file string) script {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	var s script
	for _, f := range archive.Files {
		s.before = append(s.before, []string{"file", f.Name, strings.TrimSuffix(string(f.Data), "\n")})
	}
	opened := false
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		words := fields(t, line)
		if len(words) == 0 {
			continue
		}
		switch args := words[1:]; words[0] {
		case "roots":
			s.roots = args
			if s.granted == nil {
				s.granted = args
			}
		case "granted":
			s.granted = args
		case "deny":
			s.deny = args
		case "needs-root":
			s.root = true
		case "needs-linux":
			s.linux = true
		case "open":
			opened = true
		case "try":
			s.attempts = append(s.attempts, newAttempt(t, i+1, args))
		default:
			if opened {
				s.after = append(s.after, words)
			} else {
				s.before = append(s.before, words)
			}
		}
	}
	require.NotEmpty(t, s.roots, "%s names no roots", file)
	require.NotEmpty(t, s.attempts, "%s attempts nothing", file)
	return s
}

func newAttempt(t *testing.T, line int, args []string) attempt {
	t.Helper()
	require.GreaterOrEqual(t, len(args), 2, "line %d: try PATH CLASS [OPERATION,...=VERDICT]...", line)
	a := attempt{line: line, path: args[0], class: args[1], except: map[string]string{}}
	require.Contains(t, classes, a.class, "line %d", line)
	for _, exception := range args[2:] {
		ops, verdict, ok := strings.Cut(exception, "=")
		require.True(t, ok, "line %d: %s", line, exception)
		for op := range strings.SplitSeq(ops, ",") {
			require.Contains(t, operationNames(), op, "line %d", line)
			a.except[op] = verdict
		}
	}
	for _, op := range operationNames() {
		require.Contains(t, verdicts, a.verdict(op), "line %d: %s", line, op)
	}
	return a
}

// fields are the words of a line, of which some are Go strings. A "#" begins a remark.
func fields(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimSpace(line) {
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			require.NoError(t, err, line)
			word, err := strconv.Unquote(quoted)
			require.NoError(t, err, line)
			words, line = append(words, word), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words
}

// repeated is ${x*255}: so many x.
var repeated = regexp.MustCompile(`\$\{([^*]*)\*([0-9]+)\}`)

// expand fills in the directory of the case for $W, and what is repeated.
func (s *stage) expand(text string) string {
	text = repeated.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeated.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	return strings.ReplaceAll(text, "$W", s.dir)
}

// in is a path in the directory of the case.
func (s *stage) in(path string) string { return filepath.Join(s.dir, s.expand(path)) }

// run does one line of a script.
func (s *stage) run(t *testing.T, words []string) {
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
	case "hard": // hard PATH OTHER: the file OTHER gets the further name PATH
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

// listen makes a socket. Its name may be longer than that of a socket can be.
func (s *stage) listen(t *testing.T, path string) {
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

func inode(info os.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ino
}
