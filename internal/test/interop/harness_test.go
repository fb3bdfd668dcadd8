package interop

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/conform/schema"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// patience bounds every wait, so that a hang fails instead of hanging.
const patience = volume.Patience

// notFound is ACP's "resource not found".
const (
	notFound       = -32002
	invalidRequest = -32600
	invalidParams  = -32602
)

// agent is a process of the program. When the test ends, its exit status and everything it wrote
// are checked.
type agent struct {
	*program.Process
	t      *testing.T
	stderr *logtest.Text
	over   bool
}

// start starts the program with a state directory of its own.
func start(t *testing.T, args ...string) *agent {
	t.Helper()
	return startIn(t, filepath.Join(t.TempDir(), "state"), args...)
}

// startIn starts the program with a given state directory.
func startIn(t *testing.T, state string, args ...string) *agent {
	t.Helper()
	return startCommand(t, append([]string{program.Path(), "--state-dir", state}, args...)...)
}

func startCommand(t *testing.T, command ...string) *agent {
	t.Helper()
	stderr := &logtest.Text{}
	p, err := program.Start(program.Options{Command: command, Env: proctest.Env("scripted"), Stderr: stderr})
	require.NoError(t, err)
	a := &agent{Process: p, t: t, stderr: stderr}
	t.Cleanup(func() {
		a.leave()
		valid(t, p.Lines())
	})
	return a
}

// behind returns the arguments that put the scripted agent behind the program.
func behind() []string { return []string{"--", proctest.Executable()} }

// startPiped starts cmd and returns its standard input and output.
func startPiped(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return in, out
}

// within returns a context for one wait.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// leave ends the program as a client does, unless the test has ended it.
func (a *agent) leave() {
	a.t.Helper()
	if a.over {
		return
	}
	_ = a.CloseInput()
	require.Zero(a.t, a.exit(), "standard error: %s", a.stderr)
}

// kill kills the program.
func (a *agent) kill() {
	a.t.Helper()
	require.NoError(a.t, a.Kill())
	a.exit()
}

// exit waits for the program to exit and returns its status.
func (a *agent) exit() int {
	a.t.Helper()
	a.over = true
	code, err := a.Wait(within(a.t))
	if err != nil {
		_ = a.Kill()
	}
	require.NoError(a.t, err, "waiting for the end of the program; standard error: %s", a.stderr)
	return code
}

// send writes lines in one write.
func (a *agent) send(lines ...string) {
	a.t.Helper()
	require.NoError(a.t, a.Send(lines...))
}

// try sends a request and returns its response, which may be an error.
func (a *agent) try(method string, params any) rawrpc.Message {
	a.t.Helper()
	m, err := a.Call(within(a.t), method, params)
	require.NoError(a.t, err, "%s; standard error: %s", method, a.stderr)
	return m
}

// call sends a request and decodes its result into v, which may be nil.
func (a *agent) call(method string, params, v any) {
	a.t.Helper()
	m := a.try(method, params)
	if v == nil {
		v = new(json.RawMessage)
	}
	require.NoError(a.t, m.Decode(v), method)
}

// await waits for a message at or after the agent's line from.
func (a *agent) await(from int, match func(rawrpc.Message) bool) (rawrpc.Message, int) {
	a.t.Helper()
	m, at, err := a.Await(within(a.t), from, match)
	require.NoError(a.t, err, "standard error: %s", a.stderr)
	return m, at
}

// initialize initializes the connection as a client without capabilities.
func (a *agent) initialize() *agent {
	a.t.Helper()
	a.call("initialize", map[string]any{"protocolVersion": 1}, nil)
	return a
}

// open creates a session.
func (a *agent) open(cwd string, additional ...string) string {
	a.t.Helper()
	params := map[string]any{"cwd": cwd, "mcpServers": []any{}}
	if additional != nil {
		params["additionalDirectories"] = additional
	}
	var result struct{ SessionID string }
	a.call("session/new", params, &result)
	require.NotEmpty(a.t, result.SessionID)
	return result.SessionID
}

// prompt runs a turn and returns its stop reason.
func (a *agent) prompt(session, text string) string {
	a.t.Helper()
	var result struct{ StopReason string }
	a.call("session/prompt", promptParams(session, text), &result)
	return result.StopReason
}

// says runs a turn that ends as usual, and returns its updates.
func (a *agent) says(session, text string) string {
	a.t.Helper()
	from := a.Count()
	require.Equal(a.t, "end_turn", a.prompt(session, text))
	return a.updates(from, session)
}

func promptParams(session, text string) map[string]any {
	return map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}}
}

func sessionParams(session string) map[string]any { return map[string]any{"sessionId": session} }

// quoted returns a path as a JSON string.
func quoted(path string) string {
	text, err := json.Marshal(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// newParams returns the params of a session/new; additional is raw JSON, "" to omit it.
func newParams(cwd, additional string) json.RawMessage {
	if additional != "" {
		additional = `,"additionalDirectories":` + additional
	}
	return json.RawMessage(`{"cwd":` + cwd + `,"mcpServers":[]` + additional + `}`)
}

// listed is a session in a response to session/list.
type listed struct {
	SessionID             string
	Cwd                   string
	AdditionalDirectories []string
}

// list returns the first page of session/list.
func (a *agent) list(filter map[string]any) []listed {
	a.t.Helper()
	if filter == nil {
		filter = map[string]any{}
	}
	var result struct{ Sessions []listed }
	a.call("session/list", filter, &result)
	require.NotNil(a.t, result.Sessions)
	return result.Sessions
}

// updates returns the session's updates since the agent's line from, one per line.
func (a *agent) updates(from int, session string) string {
	var all []string
	for _, m := range a.Messages()[from:] {
		var params struct {
			SessionID string
			Update    json.RawMessage
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &params) == nil && params.SessionID == session {
			all = append(all, string(params.Update))
		}
	}
	return strings.Join(all, "\n")
}

// stopReason returns the stop reason of a response to a prompt.
func stopReason(t *testing.T, m rawrpc.Message) string {
	t.Helper()
	var result struct{ StopReason string }
	require.NoError(t, m.Decode(&result), m.Raw)
	return result.StopReason
}

// folder creates a directory with files, given as name and content in turn, and returns its path.
var folder = dirtest.New

// file creates a private file in a directory of its own, and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(folder(t, name, content), name)
	require.NoError(t, os.Chmod(path, 0o600))
	return path
}

// configFile creates a configuration of the program, and returns its path.
func configFile(t *testing.T, settings map[string]any) string {
	t.Helper()
	text, err := json.Marshal(settings)
	require.NoError(t, err)
	return file(t, "config.json", string(text))
}

// node is the directory in which npm installs packages.
const node = "../../../testdata/node"

// packages returns the directory of the TypeScript client's packages. Without them the test is
// skipped, except in CI.
func packages(t *testing.T) string {
	t.Helper()
	return npmtest.File(t, "testdata/node", "")
}

// valid validates what an agent wrote against the schema. The message of an error must have one
// line.
func valid(t *testing.T, lines []rawrpc.Line) {
	t.Helper()
	conversation, err := schema.Follow(false)
	require.NoError(t, err)
	for _, line := range lines {
		if !line.FromAgent {
			conversation.Client(line.Text)
			continue
		}
		var m rawrpc.Message
		if err := conversation.Agent(line.Text); err != nil {
			t.Errorf("W1: %v\nin the line %s", err, line.Text)
		} else if json.Unmarshal([]byte(line.Text), &m) == nil && m.Error != nil {
			require.Regexp(t, `^[^\r\n]+$`, m.Error.Message)
		}
	}
}
