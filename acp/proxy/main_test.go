package proxy_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

func TestMain(m *testing.M) {
	proctest.Main(m, func(role string) int {
		in, err := proctest.OpenInput()
		if err != nil {
			return 99
		}
		if role == simulatedRole {
			return simulate(in)
		}
		return followScript(in)
	})
}

// patience bounds waits for what must happen.
const patience = 20 * time.Second

// Scripts begin with one of these.
const (
	plain = "await initialize\n" +
		`send {"jsonrpc":"2.0","id":$initialize$,"result":{"protocolVersion":1,"agentInfo":{"name":"scripted"},"x":1.0}}` + "\n"
	capable = "await initialize\n" +
		`send {"jsonrpc":"2.0","id":$initialize$,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{},"close":{}}}}}` + "\n"
	opened = "await session/new\n" +
		`send {"jsonrpc":"2.0","id":$session/new$,"result":{"sessionId":"child-1","modes":{"n":1.0}}}` + "\n"
	answered = `send {"jsonrpc":"2.0","id":$session/prompt$,"result":{"stopReason":"end_turn","_meta":{"n":1e0}}}` + "\n"
)

// bench is a proxy in front of a scripted agent, and behind a client that is played by the test.
type bench struct {
	t       *testing.T
	command process.Command
	runtime backend.Runtime
	editor  *editor
	record  proctest.Record
	info    backend.Info
	closed  bool
}

// played starts this binary in a role. The record has the lines that it is sent.
func played(t testing.TB, role string, env ...string) (process.Command, proctest.Record) {
	t.Helper()
	record := proctest.NewRecord(t)
	return process.Command{Path: proctest.Executable(), Name: role, Env: proctest.Env(role, append(env, record.Env())...)}, record
}

// command starts this binary with a script.
func command(t testing.TB, script string) (process.Command, proctest.Record) {
	t.Helper()
	return played(t, scriptedRole, scriptVariable+"="+script)
}

// start starts the agent, without asking it anything.
func start(t *testing.T, script string, o proxy.Options) *bench {
	if o.Child.Grace == 0 {
		o.Child.Grace = patience
	}
	c, record := command(t, script)
	b := &bench{t: t, command: c, runtime: proxy.New(c, o), editor: newEditor(t), record: record}
	t.Cleanup(b.close)
	return b
}

// initialized is start, and initialize.
func initialized(t *testing.T, script string, o proxy.Options) *bench {
	b := start(t, script, o)
	var err error
	b.info, err = b.runtime.Initialize(t.Context(), backend.Raw(`{"protocolVersion":1,"clientCapabilities":{"n":1.0}}`), b.editor)
	require.NoError(t, err)
	return b
}

// close ends the agent.
func (b *bench) close() {
	if b.closed {
		return
	}
	b.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(b.t, b.runtime.Close(ctx))
}

// received ends the agent and returns what it had been sent, of these methods; "" stands for answers.
func (b *bench) received(methods ...string) []string {
	b.close()
	return linesOf(b.t, b.record, methods...)
}

// linesOf are the lines of a record, of these methods; "" stands for answers.
func linesOf(t testing.TB, record proctest.Record, methods ...string) []string {
	lines := []string{}
	for _, line := range record.Lines(t) {
		var m struct{ Method string }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		for _, method := range methods {
			if m.Method == method {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// open opens a session in /a.
func (b *bench) open() (backend.Session, backend.Opened) {
	return b.openWith(`{"cwd":"/a","mcpServers":[]}`)
}

func (b *bench) openWith(params string) (backend.Session, backend.Opened) {
	b.t.Helper()
	s, opened, err := b.runtime.Open(b.t.Context(), backend.Activation{Cause: backend.New, Params: backend.Raw(params)}, host{b.editor})
	require.NoError(b.t, err)
	return s, opened
}

// prompt runs a turn to its end.
func (b *bench) prompt(s backend.Session) (string, error) {
	return await(b.t, s.Prompt(b.t.Context(), backend.Raw(`{"prompt":[{"type":"text","text":"hello"}]}`), turn{b.editor}))
}

// await runs work and fails if it takes too long.
func await(t *testing.T, work backend.Work) (string, error) {
	t.Helper()
	type outcome struct {
		result backend.Raw
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := work()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return string(o.result), o.err
	case <-time.After(patience):
		require.Fail(t, "took too long")
		return "", nil
	}
}
