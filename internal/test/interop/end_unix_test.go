//go:build unix

package interop

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

// requireSoon checks that the program has exited in time: within 3 seconds, and more on a machine
// so busy that the program takes long to print its version.
func requireSoon(t *testing.T, began time.Time) {
	t.Helper()
	took := time.Since(began)
	began = time.Now()
	require.NoError(t, exec.Command(program.Path(), "version").Run())
	require.Less(t, took, 3*time.Second+30*time.Since(began))
}

// begin starts a turn and returns the id of its request and the index of its first update.
func (a *agent) begin(session, text string) (id, from int) {
	a.t.Helper()
	from, id = a.Count(), a.NextID()
	a.send(rawrpc.Request(id, "session/prompt", promptParams(session, text)))
	a.await(from, func(m rawrpc.Message) bool { return isUpdate(m) && waiting.MatchString(m.Raw) })
	return id, from
}

// waiting is the scripted agent's message in a turn that waits.
var waiting = regexp.MustCompile(`waiting (\d+)`)

// ended checks that the program has answered the turn and exited in time.
func (a *agent) ended(began time.Time, id, from int) {
	a.t.Helper()
	m, err := a.Response(within(a.t), from, id)
	require.NoError(a.t, err, "the turn was not answered; standard error: %s", a.stderr)
	require.Equal(a.t, "cancelled", stopReason(a.t, m))
	require.Zero(a.t, a.exit(), "standard error: %s", a.stderr)
	requireSoon(a.t, began)
}

// gone checks that the process of the agent behind the program has ended.
func gone(t *testing.T, a *agent, session string) {
	t.Helper()
	found := waiting.FindStringSubmatch(a.updates(0, session))
	require.NotNil(t, found)
	pid, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	require.True(t, errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), "process %d is still there", pid)
}

// Clause W9.
func TestOrderlyEnd(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name string
		end  func(a *agent) error
	}{
		{"W9/end of input", func(a *agent) error { return a.CloseInput() }},
		{"W9/SIGTERM", func(a *agent) error { return a.Signal(syscall.SIGTERM) }},
		{"W9/SIGINT", func(a *agent) error { return a.Signal(os.Interrupt) }},
	}
	for _, script := range []string{"wait", "stubborn"} {
		for _, way := range ways {
			t.Run(way.name+"/"+script, func(t *testing.T) {
				a := start(t, behind()...).initialize()
				session := a.open(folder(t))
				id, from := a.begin(session, script)
				began := time.Now()
				require.NoError(t, way.end(a))
				a.ended(began, id, from)
				gone(t, a, session)
			})
		}
	}
	large := folder(t, tree(3000)...)
	for _, way := range ways {
		t.Run(way.name+"/the built-in agent searching", func(t *testing.T) {
			a := start(t).initialize()
			session := a.open(large)
			from, id := a.Count(), a.NextID()
			a.send(rawrpc.Request(id, "session/prompt", promptParams(session, "/search no such words")))
			a.await(from, isUpdate)
			began := time.Now()
			require.NoError(t, way.end(a))
			_, err := a.Response(within(t), from, id)
			require.NoError(t, err)
			require.Zero(t, a.exit())
			requireSoon(t, began)
		})
		t.Run(way.name+"/before anything was said", func(t *testing.T) {
			a := start(t)
			if way.name != "W9/end of input" {
				a.try("session/list", map[string]any{}) // it is there, and takes signals
			}
			began := time.Now()
			require.NoError(t, way.end(a))
			require.Zero(t, a.exit())
			requireSoon(t, began)
		})
	}
}

// Requests read before the end of input are answered, and what was answered is stored.
//
// Clause W9.
func TestRequestsBeforeEOFAreAnswered(t *testing.T) {
	t.Parallel()
	state, cwd := t.TempDir(), folder(t)
	a := startIn(t, state)
	params := map[string]any{"cwd": cwd, "mcpServers": []any{}}
	a.send(
		rawrpc.Request(1, "initialize", map[string]any{"protocolVersion": 1}),
		rawrpc.Request(2, "session/new", params),
		rawrpc.Request(3, "session/new", params),
	)
	require.NoError(t, a.CloseInput())
	require.Zero(t, a.exit(), "standard error: %s", a.stderr)
	answered := 0
	for _, m := range a.Messages() {
		if m.IsResponse("2") || m.IsResponse("3") {
			answered++
			require.Nil(t, m.Error, m.Raw)
		}
	}
	require.Equal(t, 2, answered)
	require.Len(t, startIn(t, state).initialize().list(nil), 2)
}

// An editor may close our standard output before our standard input.
//
// Clause W9.
func TestClosedOutputIsTheEnd(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd := exec.CommandContext(within(t), program.Path(), "--state-dir", t.TempDir())
	cmd.Stdout, cmd.Stderr = in, &stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	_, err = io.WriteString(input, rawrpc.Request(1, "initialize", map[string]any{"protocolVersion": 1})+"\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), stderr.String())
	require.Empty(t, stderr.String())
}
