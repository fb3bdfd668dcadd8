//go:build linux || darwin

// Package containmenttest plays the containment corpus in testdata/containment against code that
// accesses files. The README there describes the format.
//
//	for _, c := range containmenttest.Cases(t, "../../../testdata/containment") {
//		s := c.Stage(t) // creates the tree
//		ws := open(s.Roots(), s.Denied())
//		s.Open(t) // runs the commands after "open"
//		for _, a := range c.Attempts {
//			text, err := ws.read(s.Path(a))
//			s.RequireContained(t, text)
//			_ = a.Verdict("read") // what err should be
//		}
//		s.Clear()
//	}
//
// The attempts of the corpus would be destructive if they succeeded. [Confine] prevents that.
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

// Case is a case of the corpus. It is immutable.
type Case struct {
	Name     string // of the file, without the extension
	Attempts []Attempt

	roots, granted, deny  []string
	needsRoot, needsLinux bool
	before, after         [][]string
}

// Attempt is a path to try.
type Attempt struct {
	Line int // in its file

	path, class string
	except      map[string]string // verdicts by operation
}

// Cases returns the cases in a directory, sorted by name.
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

// fields splits a line into words, some of which are Go strings. A "#" begins a comment.
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

// Operations returns the operations of a workspace that every attempt is made with.
func Operations() []string {
	return strings.Fields("read text list search stat lstat readlink fs-read write write-new fs-create mkdir rename-from rename-to remove")
}

// Verdicts returns the possible outcomes of an operation: "ok", "any", "refused" for any failure,
// or a kind of failure.
func Verdicts() []string {
	return strings.Fields("ok any refused outside denied protected special missing exists invalid permission isdir notdir " +
		"notempty loop toolong")
}

// Verdict returns the expected outcome of the attempt with an operation.
func (a Attempt) Verdict(operation string) string {
	if v, ok := a.except[operation]; ok {
		return v
	}
	of := classes()[a.class]
	if v, ok := of[operation]; ok {
		return v
	}
	return of[""]
}

// classes returns what a path can be: for each class the verdict by operation, and by "" for all
// others.
func classes() map[string]map[string]string {
	return map[string]map[string]string{
		"outside": {"": "outside"},
		"denied":  {"": "denied"},
		"invalid": {"": "invalid"},
		"toolong": {"": "toolong"},
		"notdir":  {"": "notdir"},
		"refused": {"": "refused"},
		"safe":    {"": "any"},
		"file":    verdictsFor("ok", "notdir", "list search", "exists", "write-new mkdir rename-to", "invalid", "readlink"),
		"read-only": verdictsFor("ok", "notdir", "list search", "exists", "write-new mkdir rename-to", "invalid", "readlink",
			"permission", "write fs-create"),
		"dir": verdictsFor("ok", "isdir", "read text write write-new fs-create", "exists", "mkdir rename-to", "invalid", "readlink",
			"notempty", "remove"),
		"root": verdictsFor("ok", "isdir", "read text write write-new fs-create", "exists", "mkdir", "invalid", "readlink",
			"protected", "rename-from rename-to remove"),
		"missing": verdictsFor("missing", "ok", "write write-new fs-create mkdir rename-to"),
		"nowhere": verdictsFor("missing"),
		"special": verdictsFor("special", "notdir", "list search", "ok", "stat lstat rename-from remove", "exists", "mkdir rename-to",
			"invalid", "readlink"),
		// A link that leads outside is a name inside, which may be moved and removed.
		"link-out":    verdictsFor("outside", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
		"link-out/":   verdictsFor("outside", "notdir", "rename-from remove", "exists", "mkdir rename-to"),
		"link-denied": verdictsFor("denied", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
		"loop":        verdictsFor("loop", "ok", "lstat readlink rename-from remove", "exists", "mkdir rename-to"),
	}
}

// verdictsFor returns the verdict for most operations, and those of pairs: a verdict and the
// operations it is for.
func verdictsFor(most string, pairs ...string) map[string]string {
	all := map[string]string{"": most}
	for i := 0; i < len(pairs); i += 2 {
		for op := range strings.FieldsSeq(pairs[i+1]) {
			all[op] = pairs[i]
		}
	}
	return all
}
