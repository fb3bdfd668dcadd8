package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// acpx runs acpx, a command-line ACP client. Each command starts the program again, except that a
// prompt leaves a process running that serves the following prompts.
type acpx struct {
	t       *testing.T
	bin     string // where it and its Node are
	home    string
	cwd     string
	command string
	count   int // of the commands so far
}

// acpxOn returns acpx in a working directory, using the program with a state directory. The test is
// skipped if acpx is not installed, except in CI.
func acpxOn(t *testing.T, state, cwd string) *acpx {
	t.Helper()
	bin := filepath.Dir(npmtest.File(t, "testdata/node-acpx", ".bin/acpx"))
	a := &acpx{t: t, bin: bin, home: t.TempDir(), cwd: cwd, command: program.Path() + " --state-dir " + state}
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(a.home, ".acpx", "queues", "*")); len(left) > 0 {
			a.try("sessions", "close") // the process that a prompt leaves behind
		}
		require.NoError(t, os.RemoveAll(a.sockets()))
	})
	return a
}

// sockets returns the directory of its sockets, outside its home because socket paths must be
// short.
func (a *acpx) sockets() string {
	sum := sha256.Sum256([]byte(a.home))
	return "/tmp/acpx-" + hex.EncodeToString(sum[:])[:10]
}

// try runs a command of acpx and returns what it printed, and its failure.
func (a *acpx) try(args ...string) (string, error) {
	a.t.Helper()
	a.count++
	args = append([]string{"--agent", a.command, "--cwd", a.cwd, "--format", "json", "--json-strict", "--ttl", "30"}, args...)
	cmd := exec.CommandContext(within(a.t), filepath.Join(a.bin, "acpx"), args...)
	cmd.Env = append(os.Environ(),
		"PATH="+a.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+a.home, "ACP_AGENT_TRACE="+a.trace(a.count))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("acpx %v: %w\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String(), err
}

// run runs a command of acpx, which must succeed.
func (a *acpx) run(args ...string) string {
	a.t.Helper()
	printed, err := a.try(args...)
	require.NoError(a.t, err)
	return printed
}

// trace returns the file to which the program started by a command writes its trace.
func (a *acpx) trace(command int) string { return filepath.Join(a.home, fmt.Sprint("trace-", command)) }

// requests returns the requests received by the program that a command started, and validates its
// messages.
func (a *acpx) requests(t *testing.T, command int) (methods []string) {
	t.Helper()
	text, err := os.ReadFile(a.trace(command))
	require.NoError(t, err)
	var lines []rawrpc.Line
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "] ")
		mark, rest, _ := strings.Cut(rest, " ")
		begin := strings.IndexByte(rest, '{')
		require.Positive(t, begin, line)
		peer, message := rest[:begin], rest[begin:]
		if !strings.HasPrefix(peer, "editor") { // over the network, more follows
			continue
		}
		lines = append(lines, rawrpc.Line{FromAgent: mark == "->", Text: message})
		var m rawrpc.Message
		require.NoError(t, json.Unmarshal([]byte(message), &m), line)
		if mark == "<-" && m.Method != "" {
			methods = append(methods, m.Method)
		}
	}
	valid(t, lines)
	return methods
}

// list returns what acpx prints for session/list.
func (a *acpx) list(t *testing.T, args ...string) []listed {
	t.Helper()
	var result struct{ Sessions []listed }
	require.NoError(t, json.Unmarshal([]byte(a.run(append([]string{"sessions", "list"}, args...)...)), &result))
	require.Equal(t, []string{"initialize", "session/list"}, a.requests(t, a.count))
	return result.Sessions
}

// Most commands start Node, so each proves as much as it can.
func TestAcpx(t *testing.T) {
	t.Parallel()
	state, cwd, lib := filepath.Join(t.TempDir(), "state"), folder(t, "a.txt", "tangerine\n"), folder(t, "b.txt", "tangerine\n")
	a := acpxOn(t, state, cwd)
	made, wide := listed{Cwd: cwd, AdditionalDirectories: []string{}}, listed{Cwd: cwd, AdditionalDirectories: []string{lib}}

	t.Run("A9/new", func(t *testing.T) {
		var result struct{ AcpxSessionID string }
		require.NoError(t, json.Unmarshal([]byte(a.run("sessions", "new")), &result))
		require.Equal(t, []string{"initialize", "session/new"}, a.requests(t, a.count))
		made.SessionID = result.AcpxSessionID
	})
	agent := startIn(t, state).initialize()
	wide.SessionID = agent.open(cwd, lib)
	agent.leave()
	t.Run("A19/another process lists sessions without a prompt", func(t *testing.T) {
		require.ElementsMatch(t, []listed{made, wide}, a.list(t, "--filter-cwd", cwd), "A15: as the program says")
		require.Empty(t, a.list(t, "--filter-cwd", lib), "A16")
	})
	t.Run("A10/a fresh process resumes and prompts", func(t *testing.T) {
		a.run("sessions", "new", "--resume-session", wide.SessionID)
		require.Equal(t, []string{"initialize", "session/resume"}, a.requests(t, a.count))
		found := a.run("prompt", "/search tangerine")
		require.Contains(t, found, filepath.Join(cwd, "a.txt"))
		require.NotContains(t, found, lib, "resume leaves no roots of which it does not speak")
		require.Equal(t, []string{"initialize", "session/resume", "session/prompt"}, a.requests(t, a.count))
	})
	t.Run("A28/close keeps the session", func(t *testing.T) {
		prompt := a.count
		a.run("sessions", "close")
		require.Equal(t, []string{"initialize", "session/resume", "session/prompt", "session/close"}, a.requests(t, prompt))
		wide.AdditionalDirectories = []string{}
		require.Contains(t, a.list(t), wide) // the other one, never prompted, is listed for a minute
	})
}
