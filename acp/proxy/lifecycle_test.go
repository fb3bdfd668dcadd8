package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// house is the adapter with the proxy and an agent behind it, which can be left and entered again: the store
// and the agent's files stay.
type house struct {
	t       testing.TB
	command process.Command
	record  proctest.Record
	options proxy.Options
	store   sessionstore.Store
}

func newHouse(t testing.TB, a abilities, o proxy.Options) *house {
	a.Dir = t.TempDir()
	c, record := simulatedCommand(t, a)
	return &house{t: t, command: c, record: record, options: o, store: sessionstore.NewMemory()}
}

// visit is a client in a house.
type visit struct {
	*client.Client
	h     *house
	agent client.Agent
	leave func()

	mu        sync.Mutex
	seen      []string
	announced []string // the updates of commands
}

// enter connects a client.
func (h *house) enter() *visit {
	h.t.Helper()
	toAdapter, fromClient := io.Pipe()
	toClient, fromAdapter := io.Pipe()
	v := &visit{h: h}
	v.Client = client.New(toClient, fromClient, client.Options{Updates: v.see})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		defer fromAdapter.Close()
		err := acp.Serve(ctx, toAdapter, fromAdapter, acp.Options{
			Runtime: func() backend.Runtime { return proxy.New(h.command, h.options) },
			Store:   h.store,
			Logger:  slog.New(slog.DiscardHandler),
		})
		if err != nil {
			h.t.Error(err)
		}
	})
	serving.Go(func() { _ = v.Serve(ctx) })
	v.leave = sync.OnceFunc(func() {
		cancel()
		serving.Wait()
	})
	h.t.Cleanup(v.leave)
	var err error
	v.agent, err = v.Initialize(h.t.Context())
	require.NoError(h.t, err)
	return v
}

// see notes an update in a few letters.
func (v *visit) see(_ context.Context, u client.Update) {
	var content struct {
		Content struct{ Text string }
	}
	_ = json.Unmarshal(u.Update, &content)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch u.Kind {
	case "user_message_chunk":
		v.seen = append(v.seen, "user "+content.Content.Text)
	case "agent_message_chunk":
		v.seen = append(v.seen, "agent "+content.Content.Text)
	default:
		v.seen = append(v.seen, u.Kind)
		if u.Kind == "available_commands_update" {
			v.announced = append(v.announced, string(u.Update))
		}
	}
}

// told is what the client was shown of the conversation since it was last asked.
func (v *visit) told() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := []string{}
	for _, s := range v.seen {
		if strings.HasPrefix(s, "user ") || strings.HasPrefix(s, "agent ") {
			told = append(told, s)
		}
	}
	v.seen = nil
	return told
}

// say runs a turn and returns the agent's words in it.
func (v *visit) say(id, word string) string {
	v.h.t.Helper()
	v.told()
	_, err := v.Prompt(v.h.t.Context(), id, sdk.TextBlock(word))
	require.NoError(v.h.t, err)
	return strings.Join(v.told(), "")
}

func (h *house) history(id string) []string {
	var words []string
	for u, err := range h.store.History(h.t.Context(), sessionstore.ID(id)) {
		require.NoError(h.t, err)
		require.NotContains(h.t, string(u), "acp-agent-context", "P7: what the child was told is no history")
		var p struct {
			Update struct{ Content struct{ Text string } }
		}
		require.NoError(h.t, json.Unmarshal(u, &p))
		words = append(words, p.Update.Content.Text)
	}
	return words
}

// received are the methods that the agent was sent, with their params.
func (h *house) received() []received {
	var list []received
	for _, line := range h.record.Lines(h.t) {
		var m struct {
			Method string
			Params json.RawMessage
		}
		require.NoError(h.t, json.Unmarshal([]byte(line), &m))
		list = append(list, received{m.Method, string(m.Params)})
	}
	return list
}

type received struct{ method, params string }

func methods(list []received) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.method)
	}
	return names
}

func roots(t testing.TB, additional int) workspace.Roots {
	dirs := make([]string, additional)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	r, err := workspace.NewRoots(t.TempDir(), dirs)
	require.NoError(t, err)
	return r
}

func with(r workspace.Roots, dirs ...string) workspace.Roots {
	changed, err := workspace.NewRoots(r.Cwd().String(), dirs)
	if err != nil {
		panic(err)
	}
	return changed
}

// Every agent that there can be, by what it has of load, resume, fork, list, close, delete and
// additionalDirectories.
func TestP7_EveryRowOfTheTable(t *testing.T) {
	for bits := range 1 << 7 {
		a := abilities{
			Load: bits&1 != 0, Resume: bits&2 != 0, Fork: bits&4 != 0, Roots: bits&8 != 0,
			Close: bits&16 != 0, Delete: bits&32 != 0, List: bits&64 != 0,
		}
		t.Run(fmt.Sprintf("%+v", a), func(t *testing.T) {
			t.Parallel()
			life(t, a)
		})
	}
}

// life is a session's whole life with an agent.
func life(t *testing.T, a abilities) {
	h := newHouse(t, a, proxy.Options{})
	first := roots(t, 2)
	extra := t.TempDir()

	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	require.Equal(t, "agent N:one", v.say(s.ID, "one"))
	v.leave()

	// Another process, and other roots: the conversation is shown once, and the agent knows it.
	v = h.enter()
	reopened, err := v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, extra)})
	require.NoError(t, err)
	require.Contains(t, string(reopened.Result), `"currentModeId":"ask"`)
	require.Equal(t, []string{"user one", "agent N:one"}, v.told())
	one := "one"
	if !a.Load && !a.Resume {
		one = "~one"
	}
	require.Equal(t, "agent N:"+one+"+two", v.say(s.ID, "two"))

	// The same live, with what it had at first: nothing is shown by a resume.
	_, err = v.ResumeSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Empty(t, v.told())
	heard := one + "+two"
	if !a.Load && !a.Resume && a.Roots { // it has to be told of the roots, which takes a new session
		heard = "~one+~two"
	}
	require.Equal(t, "agent N:"+heard+"+three", v.say(s.ID, "three"))
	require.Equal(t, []string{"one", "N:one", "two", "N:" + one + "+two", "three", "N:" + heard + "+three"}, h.history(s.ID))

	f, err := v.ForkSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Empty(t, v.told())
	forked := heard + "+three"
	if !a.Fork {
		forked = "~one+~two+~three"
	}
	require.Equal(t, "agent N:"+forked+"+four", v.say(f.ID, "four"))
	require.Equal(t, "agent N:"+heard+"+three+five", v.say(s.ID, "five"), "the source goes on by itself")

	require.NoError(t, v.CloseSession(t.Context(), f.ID))
	require.NoError(t, v.DeleteSession(t.Context(), s.ID))
	v.leave()
	requireOnlyWhatItHas(t, a, h.received(), first, extra)
}

// requireOnlyWhatItHas holds what the agent was sent against what it advertised (P1, P3).
func requireOnlyWhatItHas(t *testing.T, a abilities, got []received, first workspace.Roots, extra string) {
	all := methods(got)
	for method, has := range map[string]bool{
		"session/load": a.Load, "session/resume": a.Resume, "session/fork": a.Fork, "session/close": a.Close,
	} {
		if !has {
			require.NotContains(t, all, method)
		}
	}
	require.Equal(t, a.Close, slices.Contains(all, "session/close"))
	require.Equal(t, a.Fork, slices.Contains(all, "session/fork"))
	lists := 0
	for _, r := range got {
		var p struct {
			AdditionalDirectories *[]string
			Prompt                []struct{ Text string }
		}
		if r.method == "start" {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(r.params), &p))
		if p.AdditionalDirectories != nil {
			lists++
			require.True(t, a.Roots, "P1: %s", r.method)
		}
		switch r.method {
		case "session/load", "session/resume", "session/fork":
			require.Equal(t, a.Roots, p.AdditionalDirectories != nil, "P3: the full list")
		case "session/prompt":
			for _, block := range p.Prompt {
				if strings.Contains(block.Text, "root directories") {
					require.False(t, a.Roots, "it was told by the protocol")
				}
			}
		}
	}
	if a.Roots {
		require.Positive(t, lists)
		return
	}
	var told []string // the roots as they were told in words: at first, on load, on resume, on the fork if it is a new one
	for _, r := range got {
		if r.method == "session/prompt" && strings.Contains(r.params, "root directories") {
			told = append(told, r.params)
		}
	}
	require.GreaterOrEqual(t, len(told), 3)
	require.Contains(t, told[0], first.At(2).String())
	require.Contains(t, told[1], extra)
	require.NotContains(t, told[1], first.At(2).String())
	require.Contains(t, told[2], first.At(2).String())
}

// dirOf is where a house's agent keeps its sessions.
func dirOf(t testing.TB, h *house) string {
	for _, variable := range h.command.Env {
		if config, ok := strings.CutPrefix(variable, simulatedVariable+"="); ok {
			var a abilities
			require.NoError(t, json.Unmarshal([]byte(config), &a))
			return a.Dir
		}
	}
	return ""
}
