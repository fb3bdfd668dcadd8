package model

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// Commands that would open an editor or a pager, as a child and in a terminal of the client. The
// user's own editors and pagers would wait for a long time.
func TestCommandsWaitForNobody(t *testing.T) {
	needShell(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	const waits = "sleep 1000; #"
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(
		"[user]\nname = A\nemail = a@example.com\n[core]\neditor = "+`"`+waits+`"`+
			"\npager = "+`"`+waits+`"`+"\n[sequence]\neditor = "+`"`+waits+`"`+"\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	for _, name := range []string{"EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_PAGER"} {
		t.Setenv(name, waits)
	}
	const advice = "Nobody can use an editor here"
	commands := []struct{ line, want, not string }{
		{"cd x && git commit --allow-empty", advice, "exit code 0"},
		{"cd x && git commit --amend", advice, "exit code 0"},
		{"cd x && git tag -a v1", advice, "exit code 0"},
		{"cd x && git rebase -i HEAD~1", advice, "exit code 0"},
		{`sh -c "$EDITOR file"`, advice, "exit code 0"},
		{`sh -c "$VISUAL file"`, advice, "exit code 0"},
		{"cd x && git log", "second\n", advice},
		{"cd x && git -p log --oneline", "[exit code 0]", advice},
		{"cd x && echo paged | sh -c $PAGER", "paged\n[exit code 0]", advice},
		{"cd x && git commit --allow-empty -m third", "[exit code 0]", advice},
		{"cd x && git commit --amend --no-edit --allow-empty", "[exit code 0]", advice},
		{"cd x && git -c core.editor=true commit --amend --allow-empty", advice, "exit code 0"},
		{"cd x && GIT_EDITOR=true git commit --amend --allow-empty", "[exit code 0]", advice},
		{"cd x && EDITOR=true git commit --amend --allow-empty", "[exit code 0]", advice},
		{"cd x && GIT_EDITOR=true git rebase -i HEAD~1", "[exit code 0]", advice},
		{"cd x && GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~1", "[exit code 0]", advice},
		{`cd x && printf 'echo edited > "$1"' > "../e d" && GIT_EDITOR="sh '../e d'" ` +
			"git commit --amend --allow-empty && git log -1 --format=%s", "edited\n", advice},
	}
	if runtime.GOOS == "linux" { // where script(1) takes a command, in a terminal of its own
		if _, err := exec.LookPath("script"); err == nil {
			commands = append(commands, struct{ line, want, not string }{
				"cd x && script -qec 'git log --format=%s' /dev/null", "first\n[exit code 0]", advice})
		}
	}
	for name, offered := range map[string]requests{"child": nil, "terminal": offered(t)} {
		t.Run(name, func(t *testing.T) {
			root := dirtest.New(t, "x/file", "")
			git := func(args ...string) {
				out, err := exec.Command("git", append([]string{"-C", filepath.Join(root, "x")},
					args...)...).CombinedOutput()
				require.NoError(t, err, string(out))
			}
			git("init", "-q")
			git("commit", "-q", "--allow-empty", "-m", "first")
			git("add", "file")
			git("commit", "-q", "-m", "second")
			e := open(t, setup{roots: []string{root}, requests: offered})
			e.answer(allowOnce)
			for _, c := range commands {
				e.prompt("Run.", run(c.line, "timeout_seconds", 60))
				got := lastResult(e)
				require.Contains(t, got, c.want, c.line)
				require.NotContains(t, got, c.not, c.line)
				require.False(t, strings.Contains(got, "killed"), c.line)
			}
		})
	}
}
