package gitignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/acp-agent/acp-agent/internal/test/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ignores walks from the top to path, whose last character tells a directory by a slash. files
// are the .gitignore files by their directory, "" for the top.
func ignores(path string, files map[string]string, exclude string) bool {
	path, isDir := strings.CutSuffix(path, "/")
	m := NewMatcher(Parse([]byte(files[""])), Parse([]byte(exclude)))
	parts := strings.Split(path, "/")
	for i, name := range parts[:len(parts)-1] {
		var rules *Rules
		if text, ok := files[strings.Join(parts[:i+1], "/")]; ok {
			rules = Parse([]byte(text))
		}
		m = m.Enter(name, rules)
	}
	return m.Ignores(parts[len(parts)-1], isDir)
}

// These are not among what TestAgreesWithGit draws.
func TestOddFiles(t *testing.T) {
	for rules, want := range map[string][]bool{ // of out and x
		"\ufeffout":        {true, false},
		"out\x00x":         {true, false},
		"out\r\nx\r":       {true, true},
		"out\\":            {false, false},
		"!\n/\n//\n!/\n\\": {false, false},
	} {
		files := map[string]string{"": rules}
		require.Equal(t, want, []bool{ignores("out", files, ""), ignores("x", files, "")}, "%q", rules)
	}
}

// No rules, whoever wrote them, make a decision long.
func TestHostileRulesTakeFewSteps(t *testing.T) {
	some := strings.Repeat
	name := some("a", 255)
	deep := some(name+"/", 256)
	for of, rules := range map[string]string{
		"stars":             some("*"+some("?", 127)+"b\n", 1000),
		"stars in folders":  "**/" + some("*"+some("?", 127)+"b/", 200) + "b",
		"folders":           some("**/*a*b/**/b\n", 1000),
		"long literals":     some("*"+some("a", 250)+"b*\n", 1000),
		"short rules":       some("?b\n", 100_000),
		"joined paths":      some("*/b\n", 10_000),
		"an escaped ending": some("**\\/b\n", 10_000),
	} {
		left := maxSteps
		require.Nil(t, Parse([]byte(rules)).match(deep+name, name, false, &left), of)
		require.Greater(t, left, -maxSteps/4, of)
	}
}

func TestNilRules(t *testing.T) {
	m := NewMatcher(nil).Enter("a", nil)
	require.False(t, m.Ignores("b", false))
}

// TestAgreesWithGit asks git itself about generated trees: every entry of a tree, in one
// process, with the rule that decided.
func TestAgreesWithGit(t *testing.T) {
	needs.Programs(t, "git")
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the trees have names that this file system does not tell apart or refuses")
	}
	home := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		paths := drawTree(rt)
		files := map[string]string{"": drawRules(rt, "rules")}
		for _, path := range paths {
			directory, ok := strings.CutSuffix(path, "/")
			if ok && rapid.IntRange(0, 2).Draw(rt, "has rules") == 0 {
				files[directory] = drawRules(rt, "rules of "+path)
			}
		}
		exclude := drawRules(rt, "exclude")

		top, err := os.MkdirTemp(home, "tree")
		require.NoError(rt, err)
		defer os.RemoveAll(top)
		require.NoError(rt, plant(top, paths, files, exclude))

		want, err := askGit(home, top, paths)
		require.NoError(rt, err)
		for _, path := range paths {
			require.Equal(rt, want[path] != "" && want[path][0] != '!', ignores(path, files, exclude),
				"%q, which git decides by %q", path, want[path])
		}
	})
}

// drawTree draws entries, each with the directories on its way; a directory ends with a slash.
func drawTree(t *rapid.T) []string {
	name := rapid.SampledFrom([]string{
		"a", "b", "c", "ab", "abc", "aab", "b.o", "a.o", "x.log", "out", "a b", "b ", "!a", "#a", "]", "-", "[a", "1", "A", "é", `q\w`, "*", "a?",
	})
	kinds := map[string]bool{} // by path without slash: is it a directory
	var order []string
	put := func(path string, directory bool) bool {
		is, known := kinds[path]
		if !known {
			kinds[path], is = directory, directory
			order = append(order, path)
		}
		return is
	}
	for range rapid.IntRange(1, 12).Draw(t, "entries") {
		parts := rapid.SliceOfN(name, 1, 4).Draw(t, "path")
		directory := rapid.Bool().Draw(t, "directory")
		for i := range parts {
			if !put(strings.Join(parts[:i+1], "/"), i+1 < len(parts) || directory) {
				break
			}
		}
	}
	for i, path := range order {
		if kinds[path] {
			order[i] += "/"
		}
	}
	return order
}

func drawRules(t *rapid.T, label string) string {
	piece := rapid.SampledFrom([]string{
		"a", "b", "c", "ab", "abc", "a.o", ".o", "out", "x.log", "a b", "é", "1", "A",
		"*", "*", "*", "**", "**", "***", "?", "/", "/", "/", "/**", "**/", `\`, `\ `, `\/`, `\*`, " ",
		"[ab]", "[!ab]", "[^a]", "[a-c]", "[c-a]", "[]]", "[!]a]", "[a", "[", "]", "-", "[a-]", "[-a]", "[a-c-e]", `[\]]`, `[\a-c]`, `[a\-c]`,
		"[[:alpha:]]", "[[:digit:]b]", "[[:nope:]]", "[[:]", "[[::]]", "[[:alpha]", "[a/b]", "[!/]", "[[a-", "#", "!",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		lead := rapid.SampledFrom([]string{"", "", "", "!", "/", "!/", "**/", "#", `\!`, `\#`,
			" "}).Draw(t, "lead")
		middle := strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "pieces"), "")
		tail := rapid.SampledFrom([]string{"", "", "", "/", "/", " ", "  ", `\ `, "\r", "/**",
			"/*"}).Draw(t, "tail")
		return lead + middle + tail
	})
	end := rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, label), "\n") + end
}

// plant makes a repository by hand, which is much faster than git init.
func plant(top string, paths []string, files map[string]string, exclude string) error {
	for _, directory := range []string{"objects", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(top, ".git", directory), 0o700); err != nil {
			return err
		}
	}
	contents := map[string]string{".git/HEAD": "ref: refs/heads/main\n",
		".git/info/exclude": exclude}
	for _, path := range paths {
		if strings.HasSuffix(path, "/") {
			if err := os.MkdirAll(filepath.Join(top, path), 0o700); err != nil {
				return err
			}
			continue
		}
		contents[path] = ""
	}
	for directory, rules := range files {
		contents[filepath.Join(directory, ".gitignore")] = rules
	}
	for path, content := range contents {
		if err := os.WriteFile(filepath.Join(top, path), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// askGit returns the rules by which git decides about paths.
func askGit(home, top string, paths []string) (map[string]string, error) {
	git := exec.Command("git", "-C", top, "check-ignore", "--stdin", "-z", "-v", "-n")
	git.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES="+home)
	var in bytes.Buffer
	for _, path := range paths {
		in.WriteString(strings.TrimSuffix(path, "/"))
		in.WriteByte(0)
	}
	git.Stdin = &in
	out, err := git.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 {
		err = nil // nothing is ignored
	}
	if err != nil {
		return nil, err
	}
	fields := strings.Split(string(out), "\x00") // source, line, rule, path
	rules := make(map[string]string)
	for i, path := range paths {
		rules[path] = fields[4*i+2]
	}
	return rules, nil
}

// FuzzGlob compares the matcher with one that tries everything, as git's does.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"*.o", "/a/**/b", "lib**/x", "[!a-c]?*", `\*\/**`, "a*b*c*d",
		"**/*x*/y", "***/a", "[[:alpha:]]", "[.-0]x", "**/[é]"} {
		f.Add(pattern, "a/b/c.o")
		f.Add(pattern, "lib/aabbccdd/x")
		f.Add(pattern, "a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 40 || len(text) > 60 || strings.ContainsRune(pattern, 0) ||
			strings.Count(pattern, "*") > 5 {
			t.Skip("too long, or not a line of a file")
		}
		p := newPattern(pattern)
		if !p.ofPath && strings.Contains(text, "/") {
			t.Skip("the pattern only matches names")
		}
		rest, begins := strings.CutPrefix(text, p.begin)
		want := pattern != "" && begins && p.tryAll(p.glob, rest)
		left := maxSteps
		require.Equal(t, want, pattern != "" && p.matches(text, &left), "%q", pattern)
		require.Positive(t, left)
	})
}

// tryAll reports whether a rest of the glob matches all of a text.
func (p *pattern) tryAll(glob, text string) bool {
	if !strings.HasPrefix(glob, "*") {
		matched, size := matchOne(glob, text)
		return glob == "" && text == "" || matched && p.tryAll(glob[size:], text[1:])
	}
	found := p.asterisksAt(len(p.glob)-len(glob), text)
	for n := range len(text) + 1 {
		between := text[:n]
		ok := found.kind == anything || found.kind == withinName && !strings.Contains(between, "/") ||
			found.kind == directories && (n == 0 || text[n-1] == '/')
		if ok && p.tryAll(found.glob, text[n:]) {
			return true
		}
	}
	return false
}

// FuzzParse feeds any bytes as a file of rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*.o\n!x.o\n/out/\na/**/b\n[a-\n\\"), "a/x.o")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		m := NewMatcher(Parse(data))
		for name := range strings.SplitSeq(path, "/") {
			if m.Ignores(name, true) {
				require.True(t, m.Enter(name, nil).Ignores("x", false))
			}
			m = m.Enter(name, Parse(data))
		}
	})
}
