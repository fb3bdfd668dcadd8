package proxy_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

// marked returns a system whose agent's processes can be counted.
func marked(t *testing.T, a abilities, o proxy.Options) (*system, proctest.Mark) {
	h, mark := newSystem(t, a, o), proctest.NewMark(t)
	h.command.Env = append(h.command.Env, mark.Env())
	return h, mark
}

// requireProcesses waits until the agent has n processes.
func requireProcesses(t *testing.T, n int, mark proctest.Mark) {
	t.Helper()
	require.Eventually(t, func() bool { return len(mark.Processes()) == n }, patience, time.Millisecond)
}

func TestSharedProcess(t *testing.T) {
	h, mark := marked(t, abilities{Load: true, Close: true}, proxy.Options{Profile: flagged()}.With(proxy.Limits{Backoff: time.Millisecond}))
	v := h.connect()
	first := roots(t, 2)
	open := func(r workspace.Roots) string {
		s, err := v.NewSession(t.Context(), client.Setup{Roots: r})
		require.NoError(t, err)
		return s.ID
	}
	ids := make([]string, 3)
	var opening sync.WaitGroup
	for i := range ids {
		opening.Go(func() {
			s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
			if err != nil {
				t.Error(err)
			}
			ids[i] = s.ID
		})
	}
	opening.Wait()
	require.Len(t, mark.Processes(), 2, "one for initialize, and one for three sessions with the same folders")
	for _, id := range ids {
		require.Equal(t, "agent N:one", v.prompt(id, "one"))
	}
	_, err := v.LoadSession(t.Context(), ids[0], client.Setup{Roots: first})
	require.NoError(t, err)
	elsewhere, err := workspace.NewRoots(t.TempDir(), spelled(first))
	require.NoError(t, err)
	ids = append(ids, open(elsewhere))
	require.Len(t, mark.Processes(), 2, "the working directory belongs to the session")
	reversed := open(with(first, first.At(2).String(), first.At(1).String()))
	require.Len(t, mark.Processes(), 3, "the order counts")
	require.NoError(t, v.CloseSession(t.Context(), reversed))
	requireProcesses(t, 2, mark)

	v.crash(ids[0])
	requireProcesses(t, 1, mark)
	require.Equal(t, "agent N:one+crash+two", v.prompt(ids[0], "two"))
	require.Equal(t, "agent N:one+two", v.prompt(ids[1], "two"))
	require.Len(t, mark.Processes(), 2, "restarted once")
	for i, id := range ids {
		require.NotEmpty(t, v.prompt(id, "three"), "the session is kept while others are closed")
		require.Len(t, mark.Processes(), 2)
		require.NoError(t, v.CloseSession(t.Context(), ids[i]))
	}
	requireProcesses(t, 1, mark)
	open(first)
	require.Len(t, mark.Processes(), 2)
	t.Run("W9", func(t *testing.T) {
		v.disconnect()
		require.Empty(t, mark.Processes())
	})
}
