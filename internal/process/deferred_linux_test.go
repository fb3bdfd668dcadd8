package process_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// throughEditor runs a command in dir as an editor with terminals does, deferred if c is
// restricted. It returns the output and how the command ended.
func throughEditor(t *testing.T, c process.Command, dir string) (output, ended string) {
	t.Helper()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(os.Environ(), c.Env...)
	if c.Sandbox.Mode != sandbox.Off {
		d, err := c.Defer([]string{proctest.Executable()})
		require.NoError(t, err)
		cmd = exec.Command(d.Path, d.Args...)
		cmd.Env = append(append(os.Environ(), proctest.Env("deferred")...), d.Env...)
	}
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err.Error(), "not started"
	}
	return out.String(), cmd.ProcessState.String()
}

// What an editor runs in the sandbox behaves as without it.
//
// Clause X5.
func TestDeferredCommandsBehaveAlike(t *testing.T) {
	dir := dirtest.New(t)
	for name, text := range map[string]string{"a script": "#!/bin/sh\necho \"script $1 $0\"",
		"plain": "echo plain $1", "not-executable": "#!/bin/sh"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "not-executable"), 0o600))
	for _, c := range []process.Command{
		{Path: "echo", Args: []string{"-n", "--", "a  b", "$HOME", "; ls", ""}},
		{Path: "sh", Args: []string{"-c", `echo "$X $PWD $0" >&2; exit 3`, "-x"}, Env: []string{"X=1", "X=2 3"}},
		{Path: "/bin/sh", Args: []string{"-c", "kill -9 $$"}},
		{Path: filepath.Join(dir, "a script"), Args: []string{"one"}},
		{Path: "./a script", Args: []string{"-c"}},
		{Path: "sh", Args: []string{"-c", "ulimit -n; umask; trap; echo $-"}},
		{Path: "plain", Args: []string{"x"}, Env: []string{"PATH=" + dir}},
		{Path: "sh", Args: []string{"-c", "env | sort | grep -v -e ^_= -e ^ACP_ -e ^GORACE"}, Env: []string{"ACP=1", "LD_BIND_NOW=1"}},
	} {
		output, ended := throughEditor(t, c, dir)
		if c.Path == "plain" { // exec.Command does not look into the given PATH
			output, ended = "plain x\n", "exit status 0"
		}
		c.Sandbox = sandbox.Policy{Mode: sandbox.Write, Write: []string{dir}}
		restricted, how := throughEditor(t, c, dir)
		require.Equal(t, output, restricted, c)
		require.Equal(t, ended, how, c)
	}
}

// Some editors start every command with a shell.
func TestDeferredCommandLines(t *testing.T) {
	dir := dirtest.New(t)
	for want, c := range map[string]process.Command{
		"B\nexit status 0":      {Path: "echo b | tr b B"},
		"a\nb c\nexit status 0": {Path: `cd / && printf '%s\n'`, Args: []string{"a", "b c"}},
		"text\nexit status 0":   {Path: "cat <<EOF\ntext\nEOF"},
		"exit status 4":         {Path: "exit 4"},
	} {
		c.Sandbox = sandbox.Policy{Mode: sandbox.Write, Write: []string{dir}}
		output, ended := throughEditor(t, c, dir)
		require.Equal(t, want, output+ended)
	}
	c := process.Command{Path: "no-such-program", Sandbox: sandbox.Policy{Mode: sandbox.Write}}
	output, ended := throughEditor(t, c, dir)
	require.Contains(t, output, "not found")
	require.Equal(t, "exit status 127", ended)
}

// An agent chooses the command, its arguments and its environment, and can let the directory lead
// elsewhere before the editor goes there. None of that changes what our program does before it
// restricts itself.
//
// Clause X5.
func TestDeferredCommandsStayInside(t *testing.T) {
	proctest.AsOrdinaryUser(t, t.Name())
	in, out := dirtest.New(t), dirtest.New(t)
	evil := filepath.Join(out, "evil")
	write := "echo > " + evil
	for _, mode := range []sandbox.Mode{sandbox.Write, sandbox.Strict} {
		for _, c := range []process.Command{
			{Path: "/bin/sh", Args: []string{"-c", write}},
			{Path: write},
			{Path: "echo > evil"},
			{Path: "true", Args: []string{"; " + write, "$(" + write + ")", "`" + write + "`", "\n" + write + "\n"}},
			{Path: "true;" + write},
			{Path: "--", Args: []string{"/bin/sh", "-c", write}},
			{Path: "--sandbox=off", Args: []string{"--dir", out, "--", "/bin/sh", "-c", write}},
			{Path: "/bin/sh", Args: []string{"-c", write}, Env: []string{"LD_PRELOAD=" + in + "/evil.so",
				"PATH=" + in, "ACP_AGENT_DEFERRED={}", "ACP_AGENT_SANDBOX=off", "GODEBUG=panicnil=1", "BASH_ENV=" + in,
				"ENV=" + in, "HOME=" + in}},
		} {
			c.Sandbox = sandbox.Policy{Mode: mode, Write: []string{in}}
			for _, dir := range []string{in, out} {
				throughEditor(t, c, dir)
				require.NoFileExists(t, evil, c)
			}

			d, err := c.Defer([]string{proctest.Executable(), "sandbox", "--deferred"})
			require.NoError(t, err)
			require.Len(t, d.Env, 1)
			name, _, _ := strings.Cut(d.Env[0], "=")
			require.Equal(t, "ACP_AGENT_DEFERRED", name)
			// an editor that joins the words for a shell
			line := "echo " + strings.Join(d.Args, " ")
			require.NoError(t, exec.Command("/bin/sh", "-c", line).Run(), line)
			require.NoFileExists(t, evil, line)
		}
	}
}

// Clause X5.
func TestDeferRefusesAProgramThatCanBeReplaced(t *testing.T) {
	dir := dirtest.New(t)
	program, link := filepath.Join(dir, "acp-agent"), filepath.Join(dirtest.New(t), "link")
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	require.NoError(t, os.Symlink(program, link))
	for _, write := range []string{dir, program, filepath.Dir(dir)} {
		c := process.Command{Path: "true", Sandbox: sandbox.Policy{Mode: sandbox.Write, Write: []string{write}}}
		_, err := c.Defer([]string{link})
		require.ErrorContains(t, err, "acp-agent's own program, "+program+", lies where")
	}
}

func TestRunDeferredNeedsItsVariable(t *testing.T) {
	for env, want := range map[string]string{"X=": "did not pass on ACP_AGENT_DEFERRED",
		"ACP_AGENT_DEFERRED=x": "invalid", `ACP_AGENT_DEFERRED={"Path":"echo"}`: "no restriction"} {
		cmd := exec.Command(proctest.Executable())
		cmd.Env = append(os.Environ(), proctest.Env("deferred", env)...)
		text, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(text), want)
	}
}
