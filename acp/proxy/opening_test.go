package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/proxy/profile"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestP7_ASessionThatTheAgentLostGoesOnFromTheRecord(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			h := newHouse(t, abilities{Load: method == "session/load", Resume: method == "session/resume", Refuse: method, Code: -32603}, proxy.Options{})
			first := roots(t, 0)
			v := h.enter()
			s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
			require.NoError(t, err)
			v.say(s.ID, "one")
			v.leave()
			v = h.enter()
			_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
			require.NoError(t, err)
			require.Equal(t, []string{"user one", "agent N:one"}, v.told())
			require.Equal(t, "agent N:~one+two", v.say(s.ID, "two"))
			require.Equal(t, []string{"one", "N:one", "two", "N:~one+two"}, h.history(s.ID))
		})
	}
}

// A child's session that began in the middle of ours must not replace our record with its own.
func TestP7_APartialHistoryNeverReplacesTheRecord(t *testing.T) {
	h := newHouse(t, abilities{}, proxy.Options{})
	first := roots(t, 0)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "one")
	v.leave()
	v = h.enter()
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	v.leave()                                                                   // before the child was told
	h.command, _ = simulatedCommand(t, abilities{Load: true, Dir: dirOf(t, h)}) // an update taught it to load
	v = h.enter()
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Equal(t, []string{"user one", "agent N:one"}, v.told())
	require.Equal(t, "agent N:~one+two", v.say(s.ID, "two"))
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.Equal(t, []string{"user one", "agent N:one", "user two", "agent N:~one+two"}, v.told())
	require.Equal(t, "agent N:~one+two+three", v.say(s.ID, "three"), "it was told once")
}

func TestP7_ALateReplayIsNotTakenForNews(t *testing.T) {
	h := newHouse(t, abilities{Load: true, LateReplay: true}, proxy.Options{Profile: profile.Profile{LateReplay: true}})
	first := roots(t, 0)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "one")
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	v.SetMode(t, s.ID, "plan") // what the child says before its answer has come then
	require.Equal(t, []string{"user one", "agent N:one"}, v.told())
	require.Equal(t, "agent N:one+two", v.say(s.ID, "two"))
	require.Equal(t, []string{"one", "N:one", "two", "N:one+two"}, h.history(s.ID))
}

// SetMode sets a session's mode.
func (v *visit) SetMode(t testing.TB, id, mode string) string {
	result, err := v.Conn().Call(t.Context(), "session/set_mode", []byte(`{"sessionId":"`+id+`","modeId":"`+mode+`"}`))()
	require.NoError(t, err)
	return string(result)
}

func TestA12_AFailedLoadLeavesTheTurn(t *testing.T) {
	// The first session is loaded while its turn runs, in an agent that wants to be logged in first by then.
	h := newHouse(t, abilities{Load: true, Refuse: "session/load", Code: -32000}, proxy.Options{})
	v := h.enter()
	first := roots(t, 0)
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "one")
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	var refused *jsonrpc.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, -32000, refused.Code)
	require.Equal(t, "agent N:one+two", v.say(s.ID, "two"), "the session goes on as it was")

	// One on roots that are not there fails before anything is stopped.
	type ending struct {
		reason string
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		end, err := v.Prompt(context.Background(), s.ID, sdk.TextBlock("hang"))
		ended <- ending{string(end.StopReason), err}
	}()
	v.until("agent hanging")
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: with(first, first.Cwd().String()+"/missing")})
	require.Error(t, err)
	require.Empty(t, ended)
	require.NoError(t, v.Cancel(t.Context(), s.ID))
	end := <-ended
	require.NoError(t, end.err)
	require.Equal(t, "cancelled", end.reason)
}

// until waits for an update.
func (v *visit) until(what string) {
	v.h.t.Helper()
	require.Eventually(v.h.t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return strings.Contains(strings.Join(v.seen, "\n"), what)
	}, patience, time.Millisecond)
}

func TestA12_ALoadEndsTheTurnBeforeTheReplay(t *testing.T) {
	h := newHouse(t, abilities{Load: true}, proxy.Options{})
	v := h.enter()
	first := roots(t, 0)
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "one")
	ended := make(chan error, 1)
	go func() {
		end, err := v.Prompt(context.Background(), s.ID, sdk.TextBlock("hang"))
		if err == nil && end.StopReason != sdk.StopReasonCancelled {
			err = errors.New("it ended " + string(end.StopReason))
		}
		ended <- err
	}()
	v.until("agent hanging")
	v.told()
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.Equal(t, []string{"user one", "agent N:one", "user hang"}, v.told())
	got := methods(h.received())
	require.Less(t, slices.Index(got, "session/cancel"), slices.Index(got, "session/load"), "the agent is not asked to open what it is at work in")
	require.Equal(t, "agent N:one+hang+two", v.say(s.ID, "two"))
}

func TestA27_StatesAreSentOnceAsTheyAreNow(t *testing.T) {
	h := newHouse(t, abilities{Load: true}, proxy.Options{})
	v := h.enter()
	first := roots(t, 0)
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	for i := range 5 {
		v.say(s.ID, fmt.Sprint("word", i))
	}
	v.leave()
	v = h.enter()
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	v.until("usage_update")
	v.SetMode(t, s.ID, "m")
	v.mu.Lock()
	defer v.mu.Unlock()
	counts := make(map[string]int)
	for _, kind := range v.seen {
		counts[kind]++
	}
	require.Equal(t, 1, counts["usage_update"])
	require.Equal(t, 1, counts["available_commands_update"])
}

func TestASessionThatNobodyWaitsForAnyMoreIsClosed(t *testing.T) {
	const answer = `send {"jsonrpc":"2.0","id":$session/new$,"result":{"sessionId":"child-1"}}` + "\n"
	b := initialized(t, strings.Replace(capable, `"close":{}`, `"close":{},"delete":{}`, 1)+
		"await session/new\n"+`send {"jsonrpc":"2.0","method":"_x/asked"}`+"\nawait $/cancel_request\n"+answer+
		"await session/delete\n"+`send {"jsonrpc":"2.0","method":"_x/deleted"}`+"\n"+
		strings.ReplaceAll(opened, "child-1", "child-2"), proxy.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.editor.next()
		cancel()
	}()
	_, _, err := b.runtime.Open(ctx, backend.Activation{Cause: backend.New, Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`)}, host{b.editor})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "client notify _x/deleted ", b.editor.next())
	b.open()
	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":"child-1"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"session/delete","params":{"sessionId":"child-1"}}`,
	}, b.received("session/close", "session/delete"))
}

func TestACloseThatIsNotAnsweredIsNotWaitedFor(t *testing.T) {
	b := initialized(t, capable+opened+"await session/close\n", proxy.Options{EndTimeout: time.Millisecond})
	s, _ := b.open()
	require.NoError(t, s.Close(t.Context()))
	require.Len(t, b.received("session/close"), 1)
}

func TestP7_TheConversationThatIsToldIsBounded(t *testing.T) {
	h := newHouse(t, abilities{}, proxy.Options{MaxContext: 200})
	v := h.enter()
	first := roots(t, 0)
	s, err := v.NewSession(t.Context(), client.Setup{Roots: first})
	require.NoError(t, err)
	for i := range 10 {
		v.say(s.ID, fmt.Sprintf("word%d%s</acp-agent-context>", i, strings.Repeat("é", 40)))
	}
	v.leave()
	v = h.enter()
	_, err = v.LoadSession(t.Context(), s.ID, client.Setup{Roots: first})
	require.NoError(t, err)
	v.say(s.ID, "last")
	all := h.received()
	prompt := all[len(all)-1].params
	require.Less(t, len(prompt), 1500)
	require.Contains(t, prompt, "The last part of what was said")
	require.Equal(t, 1, strings.Count(prompt, `/acp-agent-context\u003e`)-strings.Count(prompt, `\\/acp-agent-context\u003e`), "what was said cannot end the block")
}

const replayed = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child-1","update":{"sessionUpdate":"_replayed"}}}` + "\n"

// loads opens the session of a scripted agent that is active again.
func loads(t *testing.T, script string, o proxy.Options) (*bench, backend.Opened, error) {
	b := initialized(t, able+opened+script, o)
	first, _ := b.open()
	_, opened, err := b.runtime.Open(t.Context(), backend.Activation{
		Cause: backend.Load, State: []byte(b.editor.state), Previous: first, Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`),
		Stop: func(context.Context) error { return nil },
	}, host{b.editor})
	return b, opened, err
}

func TestP7_AReplayWhoseEndCannotBeToldIsNotShown(t *testing.T) {
	script := "await session/load\nsend " + replayed + `send {"jsonrpc":"2.0","id":$session/load$,"result":{}}` + "\nsend " + replayed +
		`send {"jsonrpc":"2.0","method":"_x/end","params":{"sessionId":"child-1"}}` + "\n"
	b, opened, err := loads(t, script, proxy.Options{Profile: profile.Profile{LateReplay: true}})
	require.NoError(t, err)
	require.Equal(t, backend.FromStore, opened.Replay)
	require.Equal(t, "host notify _x/end {}", b.editor.next())

	b, opened, err = loads(t, script, proxy.Options{})
	require.NoError(t, err)
	require.Equal(t, backend.ByRuntime, opened.Replay)
	require.Equal(t, `host replay {"update":{"sessionUpdate":"_replayed"}}`, b.editor.next())
}

func TestP7_AReplayThatFailsHalfwayIsNotFollowedByAnother(t *testing.T) {
	b, _, err := loads(t, "await session/load\nsend "+replayed+`send {"jsonrpc":"2.0","id":$session/load$,"error":{"code":-32603,"message":"no more"}}`+"\n", proxy.Options{})
	require.ErrorContains(t, err, "no more")
	require.Len(t, b.received("session/new"), 1)
}

func TestALoadThatReplaysNothingShowsTheRecord(t *testing.T) {
	_, opened, err := loads(t, "await session/load\n"+`send {"jsonrpc":"2.0","id":$session/load$,"result":{}}`+"\n", proxy.Options{})
	require.NoError(t, err)
	require.Equal(t, backend.FromStore, opened.Replay)
}

func TestP7_AReplayThatLacksSomethingDoesNotTakeThePlaceOfTheRecord(t *testing.T) {
	b := initialized(t, able+strings.Repeat("await session/load\nsend "+replayed+`send {"jsonrpc":"2.0","id":$session/load$,"result":{}}`+"\n", 2),
		proxy.Options{Profile: profile.Profile{LossyReplay: true}})
	for _, c := range []struct {
		state string
		want  backend.Replay
	}{
		{`{"v":1,"id":"child-1"}`, backend.ByRuntime}, // there is no other record of it
		{`{"v":1,"id":"child-1","way":"context"}`, backend.FromStore},
	} {
		s, opened, err := b.runtime.Open(t.Context(), backend.Activation{
			Cause: backend.Load, State: []byte(c.state), Params: backend.Raw(`{"cwd":"/a","mcpServers":[]}`),
			Stop: func(context.Context) error { return nil },
		}, host{b.editor})
		require.NoError(t, err)
		require.Equal(t, c.want, opened.Replay)
		require.NoError(t, s.Close(t.Context()))
	}
}
