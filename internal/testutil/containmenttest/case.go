//go:build linux || darwin

package containmenttest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// Case is a case of the corpus. It does not change.
type Case struct {
	// Name is that of its file, without the extension: the clauses and the vulnerability.
	Name     string
	Attempts []Attempt

	roots, granted, deny  []string
	needsRoot, needsLinux bool
	before, after         [][]string
}

// Attempt is a path that is to be tried.
type Attempt struct {
	// Line is where it stands in its file.
	Line int

	path, class string
	except      map[string]string // verdicts by operation
}

// Cases are all cases in a directory, sorted by name.
func Cases(t testing.TB, dir string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there is no corpus in %s", dir)
	cases := make([]Case, len(files))
	for i, file := range files {
		cases[i] = parse(t, file)
	}
	return cases
}

// Skip skips the test if the case cannot be set up here.
func (c Case) Skip(t testing.TB) {
	t.Helper()
	if c.needsRoot && os.Geteuid() != 0 {
		t.Skip("only root can set this up")
	}
	if c.needsLinux && runtime.GOOS != "linux" {
		t.Skip("other systems take other names for one")
	}
}

func parse(t testing.TB, file string) Case {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	c := Case{Name: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	for _, f := range archive.Files {
		c.before = append(c.before, []string{"file", f.Name, strings.TrimSuffix(string(f.Data), "\n")})
	}
	opened := false
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		words := fields(t, line)
		if len(words) == 0 {
			continue
		}
		switch args := words[1:]; words[0] {
		case "roots":
			c.roots = args
			if c.granted == nil {
				c.granted = args
			}
		case "granted":
			c.granted = args
		case "deny":
			c.deny = args
		case "needs-root":
			c.needsRoot = true
		case "needs-linux":
			c.needsLinux = true
		case "open":
			opened = true
		case "try":
			c.Attempts = append(c.Attempts, newAttempt(t, i+1, args))
		default:
			if opened {
				c.after = append(c.after, words)
			} else {
				c.before = append(c.before, words)
			}
		}
	}
	require.NotEmpty(t, c.roots, "%s names no roots", file)
	require.NotEmpty(t, c.Attempts, "%s attempts nothing", file)
	return c
}

func newAttempt(t testing.TB, line int, args []string) Attempt {
	t.Helper()
	require.GreaterOrEqual(t, len(args), 2, "line %d: try PATH CLASS [OPERATION,...=VERDICT]...", line)
	a := Attempt{Line: line, path: args[0], class: args[1], except: map[string]string{}}
	require.Contains(t, classes(), a.class, "line %d", line)
	for _, exception := range args[2:] {
		ops, verdict, ok := strings.Cut(exception, "=")
		require.True(t, ok, "line %d: %s", line, exception)
		for op := range strings.SplitSeq(ops, ",") {
			require.Contains(t, Operations(), op, "line %d", line)
			a.except[op] = verdict
		}
	}
	for _, op := range Operations() {
		require.True(t, slices.Contains(Verdicts(), a.Verdict(op)), "line %d: %s: %s", line, op, a.Verdict(op))
	}
	return a
}

// fields are the words of a line, of which some are Go strings. A "#" begins a remark.
func fields(t testing.TB, line string) []string {
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
