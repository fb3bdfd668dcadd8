package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/acp-agent/acp-agent/internal/process"
	columns "github.com/acp-agent/acp-agent/internal/terminal"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
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

// withoutLandlock is a command of the scripts: it runs another one as on a kernel without Landlock.
func withoutLandlock() {
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = proctest.Deny(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)
	}
	if err == nil {
		err = unix.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// An agent that doctor stops because it is silent is not said to have ended by itself.
func TestSilentAgent(t *testing.T) {
	silent := errors.New("it has not answered")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, silent)
	defer cancel()
	_, err := tryAgent(ctx, downstream{
		command: process.Command{Path: "sleep", Args: []string{"1000"}},
	})
	require.ErrorContains(t, err, silent.Error())
}

// The list names the level at which hosts are enforced, for ordinary users too.
//
// Clause X7.
func TestAgentsNameTheLevel(t *testing.T) {
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "agents") // accessible to all users
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	text, err := os.ReadFile(built(t))
	require.NoError(t, err)
	program, config := filepath.Join(dir, "acp-agent"), filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(program, text, 0o755))
	home := filepath.Join(dir, "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(home, nobody, nobody))
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	const agent = `{"agents":{"x":{"command":"true","sandbox":"write","sandboxHosts":[]}}}`
	require.NoError(t, os.WriteFile(config, []byte(agent), 0o644))
	say := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.SysProcAttr = dir, attributes
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	proxy := say("sandbox", "--hosts=", "--", "sh", "-c", "echo $HTTP_PROXY")
	own := !strings.Contains(proxy, "@") // no other program reaches it, so it asks for no password
	listed := say("agents", "--config", config)
	require.Equal(t, own, strings.Contains(listed, "no hosts, in a network of its own"), listed)
}
