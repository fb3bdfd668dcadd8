package commandline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/tabletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, dirtest.InMemory()) }

// Every item of the table has the form that its comments describe.
func TestTable(t *testing.T) {
	const kind = "(PATH|FILE|TEXT|FORMAT|WORD|NUM|PKG|SIGNED|LINES|LABEL|TASK)"
	words := regexp.MustCompile(`^(TASK|-?-?[a-z]+(-[a-z]+)*(\|[a-z]+)*)$`)
	options := regexp.MustCompile(`^--?[A-Za-z0-9][A-Za-z0-9_-]*([=:]` + kind + `|\[=` + kind + `\])?$`)
	operands := regexp.MustCompile(`^(` + kind + `(\.\.\.)?)$`)
	for _, u := range programs() {
		for word := range strings.FieldsSeq(u.words) {
			require.Regexp(t, words, word)
		}
		for o := range strings.FieldsSeq(u.options + " " + u.passed) {
			require.Regexp(t, options, o, u.words)
		}
		listed := strings.Fields(u.operands)
		for i, o := range listed {
			require.Regexp(t, operands, o, u.words)
			require.True(t, i == len(listed)-1 || !strings.HasSuffix(o, "..."), u.words)
		}
		require.Regexp(t, `^[A-Za-z0-9]*$`, u.letters)
	}
}

// What was a rule once and is not now, allows nothing.
func TestIsRule(t *testing.T) {
	for rule, is := range map[string]bool{"go test": true, "git commit": false, "go": false, "rg": true,
		"git log extra": false, "": false, "npm run lint": true, "make check": true} {
		require.Equal(t, is, isRule(strings.Fields(rule)), rule)
	}
	require.True(t, TakesMore([]string{"git", "log"}))
	require.False(t, TakesMore([]string{"go", "version"}))
	require.Contains(t, Describe([]string{"git", "log"}), "--oneline")
	require.Contains(t, Describe([]string{"git", "log"}), "paths in the folders")
	require.Empty(t, Describe([]string{"go", "version"}))
}

// A root that was replaced is not the one that the session opened.
func TestReplacedRoot(t *testing.T) {
	p := newGround(t)
	require.NoError(t, os.Rename(p.other, p.other+"-moved"))
	require.NoError(t, os.Symlink(filepath.Join(p.top, "out"), p.other))
	_, err := Understand(p.ws, p.root, "cat "+p.other+"/secret.txt")
	require.Error(t, err)
}

// A PATH with the current directory, also as an empty name, finds programs of the folder.
func TestRelativePath(t *testing.T) {
	p := newGround(t)
	p.write("bin/git", "#!/bin/sh\necho ran >>\"$OUT/ran\"\n")
	require.NoError(t, os.Chmod(filepath.Join(p.root, "bin", "git"), 0o755))
	path := os.Getenv("PATH")
	t.Setenv("PATH", "./bin:"+path)
	_, marked := p.run(p.root, "git status")
	require.True(t, marked)
	for _, set := range []string{"./bin:" + path, ":" + path, path + ":"} {
		t.Setenv("PATH", set)
		_, err := Understand(p.ws, p.root, "git status")
		require.ErrorContains(t, err, "PATH")
	}
}

func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		"a  b": "a|b", `'a b'"c d"`: "a bc d", "": "", "a;b": "a|*;|b", "a 2>b": "a|*>|b", "a2>b": "a2|*>|b",
		"a&&b||c": "a|*&&|b|*|||c", "x=$(y)": "x=|*$(|y|*)", `"$(y)"`: "!$(y)", "`a`": "*`|a|*`",
		`a\ b`: "?a b", "a*": "?a*", "''": "", "HEAD~1": "HEAD~1", "~": "?~", "a=~": "?a=~", "a\nb": "a|*\n|b",
		"=%h": "=%h", "%h": "?%h",
	} {
		tokens, complete := split(line)
		require.True(t, complete, line)
		var got []string
		for _, token := range tokens {
			mark := map[tokenKind]string{expanded: "?", substituted: "!", operator: "*"}[token.kind]
			got = append(got, mark+token.text)
		}
		require.Equal(t, want, strings.Join(got, "|"), line)
	}
	_, complete := split("a 'b")
	require.False(t, complete)
	tokens, complete := split("a" + strings.Repeat(" ", MaxLine))
	require.False(t, complete)
	require.Empty(t, tokens)
}

// The shell passes on exactly the words that were understood.
func FuzzUnderstand(f *testing.F) {
	for _, file := range []string{"attacks.txt", "harmless.txt"} {
		for _, lines := range tabletest.Read(f, file) {
			for _, line := range lines {
				f.Add(line)
			}
		}
	}
	p := newGround(f)
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := Understand(p.ws, p.root, line); err != nil {
			return
		}
		words, err := Plain(line)
		require.NoError(t, err)
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", `printf '%s\0' `+line)
		shell.Dir, shell.Env = t.TempDir(), []string{"PATH=/nonexistent", "IFS=g"}
		out, err := shell.CombinedOutput()
		require.NoError(t, err, "%q: %s", line, out)
		require.Equal(t, strings.Join(words, "\x00")+"\x00", string(out), "%q", line)
		left, err := os.ReadDir(shell.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
