package proxy_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

// marked returns a system whose agent's processes can be counted.
func marked(t *testing.T, a abilities, o proxy.Options) (*system, proctest.Mark) {
	h := newSystem(t, a, o)
	mark := proctest.NewMark(t) + proctest.Mark(h.record)
	h.command.Env = append(h.command.Env, mark.Env())
	return h, mark
}

// requireProcesses waits until the agent has n processes.
func requireProcesses(t *testing.T, n int, mark proctest.Mark) {
	t.Helper()
	require.Eventually(t, func() bool { return len(mark.Processes()) == n }, patience,
		5*time.Millisecond)
}

func TestSharedProcess(t *testing.T) {
	h, mark := marked(t, abilities{Load: true, Close: true},
		proxy.Options{Profile: flagged()}.WithChild(child.Limits{Backoff: time.Millisecond}))
	v := h.connect()
	first := roots(t, 2)
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
	require.Len(t, mark.Processes(), 2,
		"one for initialize, and one for three sessions with the same folders")
	for _, id := range ids {
		require.Equal(t, "agent N:one", v.prompt(id, "one"))
		require.Contains(t, h.way(id), "by flags")
	}
	v.load(ids[0], first)
	elsewhere, err := workspace.NewRoots(t.TempDir(), spelled(first))
	require.NoError(t, err)
	ids = append(ids, v.open(elsewhere).ID)
	require.Len(t, mark.Processes(), 2, "the working directory belongs to the session")
	reversed := v.open(with(first, first.At(2).String(), first.At(1).String())).ID
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
	v.open(first)
	require.Len(t, mark.Processes(), 2)
	t.Run("W9", func(t *testing.T) {
		v.disconnect()
		require.Empty(t, mark.Processes())
	})
	for _, r := range h.received() {
		require.NotContains(t, r.params, "acp-agent-context")
		require.NotContains(t, r.params, "additionalDirectories")
	}
}

// An agent that shares MCP servers between the sessions of a working directory must not give one
// the tools for another's folders.
//
// Clause A24.
func TestSessionsThatWouldShareServers(t *testing.T) {
	h, mark := marked(t, abilities{Load: true, Close: true},
		withTools(t, profiles.Profile{Roots: profiles.Roots{SharesServers: true}}))
	v := h.connect()
	first := roots(t, 2)
	elsewhere, err := workspace.NewRoots(t.TempDir(), spelled(first))
	require.NoError(t, err)
	v.open(elsewhere)
	id := v.open(first).ID
	for _, r := range []workspace.Roots{with(first, first.At(1).String()), with(first), first} {
		v.load(id, r)
		require.Len(t, mark.Processes(), 1, "nothing to keep apart")
	}
	reversed := with(first, first.At(2).String(), first.At(1).String())
	other, none := v.open(reversed).ID, v.open(with(first)).ID
	require.Len(t, mark.Processes(), 3, "servers that serve its folders belong to one session")
	v.load(id, with(first))
	v.load(other, with(first))
	require.Len(t, mark.Processes(), 3, "each stays in its process")
	require.NotEmpty(t, v.prompt(other, "one"))
	for i, id := range []string{none, other} {
		require.NoError(t, v.CloseSession(t.Context(), id))
		requireProcesses(t, 2-i, mark)
	}
	again := v.open(with(first)).ID
	require.Len(t, mark.Processes(), 2, "the agent may keep the servers of the first")
	require.NoError(t, v.CloseSession(t.Context(), again))
	require.NoError(t, v.CloseSession(t.Context(), id))
	requireProcesses(t, 1, mark)

	for range 2 {
		id = v.open(with(first)).ID
	}
	require.Len(t, mark.Processes(), 1, "sessions without such servers share")
	v.load(id, first)
	require.Len(t, mark.Processes(), 2)
}

// Sessions with the same folders may share servers, as long as their folders stay the same.
//
// Clause A24.
func TestSessionsWithTheSameFolders(t *testing.T) {
	h, mark := marked(t, abilities{Load: true, Close: true},
		withTools(t, profiles.Profile{Roots: profiles.Roots{SharesServers: true}}))
	v := h.connect()
	all := roots(t, 2)
	open := func(r workspace.Roots) (id string, tools sentServer) {
		s := v.open(r)
		given := h.servers("session/new")
		require.Len(t, given, 1)
		return s.ID, given[0]
	}
	one, tools := open(all)
	two, same := open(all)
	require.Equal(t, tools, same, "one server for both")
	three, _ := open(all)
	require.Len(t, mark.Processes(), 1)
	require.NoError(t, v.CloseSession(t.Context(), one))
	tools.serves(t, all)

	fewer := with(all, all.At(1).String())
	v.load(two, fewer)
	require.Len(t, mark.Processes(), 2, "it is kept apart from now on")
	own := h.servers("session/load")
	require.Len(t, own, 1)
	own[0].serves(t, fewer)
	tools.serves(t, all)
	apart, also := open(fewer)
	require.Equal(t, own[0], also)
	require.Len(t, mark.Processes(), 2, "in its process")
	for _, id := range []string{two, apart} {
		require.NoError(t, v.CloseSession(t.Context(), id))
	}
	requireProcesses(t, 1, mark)
	_, err := own[0].folders(t)
	require.ErrorContains(t, err, "not open")
	require.NoError(t, v.CloseSession(t.Context(), three))
	_, err = tools.folders(t)
	require.ErrorContains(t, err, "not open")

	// A folder that was replaced is another one.
	_, tools = open(all)
	require.NoError(t, os.Rename(all.At(1).String(), all.At(1).String()+"-old"))
	require.NoError(t, os.Mkdir(all.At(1).String(), 0o700))
	_, other := open(all)
	require.NotEqual(t, tools, other)
}

// A process that was started for certain directories is stopped when it has had nothing to do for a
// while. Its sessions go on.
func TestIdleProcess(t *testing.T) {
	const idle = 20 * time.Millisecond
	options := proxy.Options{Profile: flagged()}.WithChild(child.Limits{Idle: idle})
	t.Run("P7/it is started again for the next prompt", func(t *testing.T) {
		h, mark := marked(t, abilities{Load: true, Close: true}, options)
		v := h.connect()
		first := roots(t, 2)
		var ids []string
		for range 2 {
			s := v.open(first)
			ids = append(ids, s.ID)
			v.SetMode(t, s.ID, "plan")
		}
		requireProcesses(t, 1, mark)
		for _, id := range ids {
			require.Equal(t, "agent N:one", v.prompt(id, "one"))
		}
		for _, words := range []string{"one+two", "one+two+three"} {
			requireProcesses(t, 1, mark)
			for _, id := range ids {
				require.Equal(t, "agent N:"+words,
					v.prompt(id, words[strings.LastIndex(words, "+")+1:]))
			}
		}
		requireProcesses(t, 1, mark)
		require.Equal(t, `{}`, v.SetMode(t, ids[0], "build"), "or another request")
		requireProcesses(t, 1, mark)
		v.load(ids[0], first)
		require.Equal(t, []string{"user one", "agent N:one", "user two", "agent N:one+two",
			"user three", "agent N:one+two+three"}, v.shown(),
			"a load shows what the agent has, which is everything")
		requireProcesses(t, 1, mark)
		require.NoError(t, v.CloseSession(t.Context(), ids[1]))
		require.NoError(t, v.CloseSession(t.Context(), ids[0]))
		v.disconnect()
		require.Empty(t, mark.Processes(), "W9")
		modes := make(map[string]int)
		for _, r := range h.received() {
			require.NotContains(t, r.params, "acp-agent-context",
				"the agent has the conversation itself")
			if r.method == "session/set_mode" {
				modes[r.params[strings.Index(r.params, `"modeId"`):]]++
			}
		}
		require.GreaterOrEqual(t, modes[`"modeId":"plan"}`], 6, "in the mode that the user sees")
	})
	t.Run("it is not stopped", func(t *testing.T) {
		h, mark := marked(t, abilities{Load: true}, options)
		v := h.connect()
		busy := v.open(roots(t, 1))
		ended := v.begin(busy.ID, "hang")
		v.until("agent hanging")
		other, otherMark := marked(t, abilities{}, options)
		w := other.connect()
		unloadable := w.open(roots(t, 1))
		for range 3 {
			v.open(roots(t, 1))
			requireProcesses(t, 2, mark)
		}
		require.Len(t, mark.Processes(), 2, "during a turn")
		require.NoError(t, v.Cancel(t.Context(), busy.ID))
		require.Equal(t, "cancelled", <-ended)
		requireProcesses(t, 1, mark)
		require.Len(t, otherMark.Processes(), 2, "if the agent cannot load sessions")
		require.Equal(t, "agent N:one", w.prompt(unloadable.ID, "one"))
	})
	t.Run("prompts at any time", func(t *testing.T) {
		h, mark := marked(t, abilities{Load: true},
			proxy.Options{Profile: flagged()}.WithChild(child.Limits{Idle: time.Millisecond}))
		v := h.connect()
		s := v.open(roots(t, 1))
		var words []string
		for i := range 30 {
			words = append(words, strconv.Itoa(i))
			require.Equal(t, "agent N:"+strings.Join(words, "+"), v.prompt(s.ID, words[i]))
			require.Equal(t, `{}`, v.SetMode(t, s.ID, "plan"))
			if i%5 == 0 {
				requireProcesses(t, 1, mark)
			}
		}
	})
}

// A turn keeps its process from being stopped as idle, although the bridge that revived the process
// for it has been replaced and closed.
func TestIdleStopDuringTurnOfReplaced(t *testing.T) {
	const idle = 30 * time.Millisecond
	h, mark := marked(t, abilities{Load: true, Resume: true},
		proxy.Options{Profile: flagged()}.WithChild(child.Limits{Idle: idle, Backoff: time.Millisecond}))
	e := newFakeClient(t)
	b := &proxyTest{t: t, command: h.command, backend: proxy.New(h.command, h.options.WithProcessGrace(patience)),
		client: e, record: h.record}
	t.Cleanup(b.close)
	_, err := b.backend.Initialize(t.Context(), backend.Raw(`{"protocolVersion":1}`), e)
	require.NoError(t, err)
	const params = `{"cwd":"/a","additionalDirectories":["/b"],"mcpServers":[]}`
	s, _ := b.openWith(params)
	_, err = b.prompt(s)
	require.NoError(t, err)
	requireProcesses(t, 1, mark) // it was stopped
	ended := make(chan error, 1)
	work := s.Prompt(t.Context(), backend.Raw(`{"prompt":[{"type":"text","text":"hang"}]}`), turn{e})
	go func() { _, err := work(); ended <- err }()
	for !strings.Contains(e.next(), "hanging") {
	}
	_, _, err = b.reopened(backend.Resume, s, params)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	select {
	case err := <-ended:
		require.NoError(t, err)
		t.Fatal("the turn ended")
	case <-time.After(20 * idle):
	}
	require.Len(t, mark.Processes(), 2, "the turn is still running")
}
