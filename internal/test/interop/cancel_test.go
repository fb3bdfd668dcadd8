package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// bursts is the number of attempts at a race.
const bursts = 200

// burst repeatedly sends a prompt and its cancellation in one write and checks that every answer is
// "cancelled" and comes last.
func burst(t *testing.T, a *agent, session, text string, times int) {
	t.Helper()
	ids := make([]int, times)
	for i := range ids {
		ids[i] = a.NextID()
		from := a.Count()
		a.send(
			rawrpc.Request(ids[i], "session/prompt", promptParams(session, text)),
			rawrpc.Notification("session/cancel", sessionParams(session)),
		)
		m, err := a.Response(within(t), from, ids[i])
		require.NoError(t, err)
		require.Equal(t, "cancelled", stopReason(t, m), "prompt %d of %d", i, times)
	}
}

// Clauses W5, W6.
func TestCancelDirectlyAfterPrompt(t *testing.T) {
	t.Parallel()
	t.Run("W5/an agent that stops when it is told to", func(t *testing.T) {
		a := start(t, behind()...).initialize()
		burst(t, a, a.open(folder(t)), "wait", bursts)
	})
	t.Run("W5/an agent that does not listen", func(t *testing.T) {
		a := start(t, behind()...).initialize()
		burst(t, a, a.open(folder(t)), "stubborn", 2)
	})
	t.Run("W5/the built-in one", func(t *testing.T) {
		a := start(t).initialize()
		burst(t, a, a.open(folder(t, tree(2000)...)), "/search no such words", bursts)
	})
}

// tree returns files that take a while to search.
func tree(files int) []string {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 200)
	var all []string
	for i := range files {
		all = append(all, fmt.Sprintf("d%02d/f%04d.txt", i%20, i), text)
	}
	return all
}

// Clause W5.
func TestPromptsAfterCancels(t *testing.T) {
	t.Parallel()
	a := start(t, behind()...).initialize()
	session := a.open(folder(t))
	var lines []string
	ids := make([]int, bursts)
	for i := range ids {
		ids[i] = a.NextID()
		lines = append(lines,
			rawrpc.Request(ids[i], "session/prompt", promptParams(session, "wait")),
			rawrpc.Notification("session/cancel", sessionParams(session)),
		)
	}
	from := a.Count()
	a.send(lines...)
	for _, id := range ids {
		m, err := a.Response(within(t), from, id)
		require.NoError(t, err)
		require.Equal(t, "cancelled", stopReason(t, m))
	}
}

// Clause W6.
func TestNoUpdateAfterCancelledTurn(t *testing.T) {
	t.Parallel()
	a := start(t, behind()...).initialize()
	session := a.open(folder(t))
	for range 20 {
		from, id := a.Count(), a.NextID()
		a.send(rawrpc.Request(id, "session/prompt", promptParams(session, "stream 100000")))
		a.await(from, isUpdate)
		a.send(rawrpc.Notification("session/cancel", sessionParams(session)))
		m, err := a.Response(within(t), from, id)
		require.NoError(t, err)
		require.Equal(t, "cancelled", stopReason(t, m))
		after := a.Count()
		a.list(nil)
		for _, m := range a.Messages()[after:] {
			require.NotEqual(t, "session/update", m.Method, "an update after the answer")
		}
	}
}

// isUpdate reports whether m is an update of a turn, as opposed to the announcement of a session's
// commands.
func isUpdate(m rawrpc.Message) bool {
	return m.Method == "session/update" && !strings.Contains(m.Raw, "available_commands_update")
}
