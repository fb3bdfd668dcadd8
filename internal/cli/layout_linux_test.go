package cli

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	columns "github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// layoutRuns has command lines that print as much as possible and end, at least one of each
// command.
//
//go:embed testdata/layout.txt
var layoutRuns string

// copied matches lines that are copied as they are: commands, and what a program reads.
var copied = regexp.MustCompile(`^ +(acp-agent|git|zed|code|npm|ollama|OLLAMA_|["{}]|\)|[0-9]+ )|^ *(.|session +)?[^ ]+$|^[{}]|█|▄|▀`)

// Every command fits a terminal of 80 and of 60 columns: it prints no line that is longer, except a
// single word and what is copied.
func TestCommandsFitTheTerminal(t *testing.T) {
	needs.Programs(t, "git")
	dir := t.TempDir()
	environment := append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "TERM=xterm", "NO_COLOR=1")
	for name, content := range map[string]string{
		"app/main.go": "package main", "shared/AGENTS.md": "Be brief.",
		"app/.mcp.json": `{"mcpServers": {"files": {"command": "some-server", "args": ["` +
			strings.Repeat("a long argument ", 20) + `"]}}}`,
		"config/acp-agent/config.json": `{"models": {"far": {"keyEnv": "A_VARIABLE_THAT_IS_NOT_SET"}},
			"permissions": {"allow": ["run go test ./... -run TestOfThisNameThatIsLong -count 1 -v -timeout 1h"]}}`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	prepare := func(program string, args ...string) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, environment
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	prepare(built(t), "run", "--cwd", "app", "--dir", "shared", "/roots")
	prepare(built(t), "tokens", "add", "ana", "--within", "app", "--label", "the computer in the kitchen of her flat")
	prepare("git", "init", "-q", "app")
	prepare("git", "-C", "app", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	prepare(built(t), "worktree", "add", "long-name-of-a-task", "--cwd", "app")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state", "acp-agent-worktrees", "long-name-of-a-task",
		"app", strings.Repeat("a-long-name ", 8)), []byte("x\n"), 0o600))

	for _, width := range []int{80, 60} {
		for line := range strings.Lines(layoutRuns) {
			args := strings.Fields(line)[1:]
			t.Run(strconv.Itoa(width)+"/"+strings.Join(args, " "), func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), built(t), args...)
				cmd.Dir, cmd.Env = dir, environment
				check := func(err error) { require.NoError(t, err) }
				shown, _ := act(check, fmt.Sprintln("size", width, 24), cmd)
				require.NotContains(t, shown, "level=", "a log line")
				for line := range strings.Lines(shown) {
					line = strings.TrimRight(line, " \r\n")
					line = line[strings.LastIndex(line, "\x1b[K")+1:]
					if columns.Columns(line) > width && !copied.MatchString(line) {
						t.Errorf("%d columns: %s", columns.Columns(line), line)
					}
				}
			})
		}
	}
	var every func(*cobra.Command)
	every = func(cmd *cobra.Command) {
		require.Contains(t, layoutRuns, cmd.CommandPath(), "a command that is not run")
		for _, sub := range cmd.Commands() {
			every(sub)
		}
	}
	root := newCommands(streams{})
	root.InitDefaultCompletionCmd("bash")
	every(root)
}
