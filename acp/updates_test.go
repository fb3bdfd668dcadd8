package acp_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// declaring initializes c as a client with these capabilities.
func (c *client) declaring(capabilities string) {
	c.t.Helper()
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`)
}

const (
	notice      = `{"sessionUpdate":"notice","severity":"info","title":"n"}`
	suggestions = `{"sessionUpdate":"prompt_suggestions_update","suggestions":[]}`
	compaction  = `{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`
	summary     = `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c",` +
		`"content":{"type":"text","text":"s"}}`
	planUpdate  = `{"sessionUpdate":"plan_update","plan":{"id":"p"}}`
	planRemoved = `{"sessionUpdate":"plan_removed","planId":"p"}`
	sentWhole   = `{"sessionUpdate":"session_message","messageId":"m"}`
	sentChunk   = `{"sessionUpdate":"session_message_chunk","messageId":"m",` +
		`"content":{"type":"text","text":"s"}}`
	newer   = `{"sessionUpdate":"from_the_agent"}`
	future  = `{"sessionUpdate":"from_the_future","x":1.0}`
	own     = `{"sessionUpdate":"_own","x":1.0}`
	plan    = `{"sessionUpdate":"plan","entries":[]}`
	nothing = `{"fs":{},"terminal":true,"session":{"notices":null},"plan":false,"_meta":{"x":{}}}`
	all     = `{"session":{"notices":{},"compaction":{},"promptSuggestions":{}},"plan":{},` +
		`"subagents":{}}`
)

var everyKind = []string{plan, notice, compaction, future, summary, planUpdate, own, planRemoved,
	sentWhole, suggestions, sentChunk}

// withNotices is a store whose histories were recorded by a version that recorded every kind.
type withNotices struct{ sessionstore.Store }

func (s withNotices) Segments(
	ctx context.Context, id sessionstore.ID, after int64,
) iter.Seq2[sessionstore.Segment, error] {
	return func(yield func(sessionstore.Segment, error) bool) {
		body, _ := sessionstore.Pack([]backend.Update{
			update(`{"update":` + notice + `}`), update(`{"update":` + suggestions + `}`)})
		if yield(sessionstore.Segment{Body: body}, nil) {
			s.Store.Segments(ctx, id, after)(yield)
		}
	}
}

// What needs a capability is sent only to a client that has declared it, as it comes and from a
// history that was recorded for another client. What is about the moment is never recorded.
//
// Clause A37.
func TestUpdatesNeedCapabilities(t *testing.T) {
	unasked := []string{plan, future, own}
	recorded := without(everyKind, notice, suggestions)
	for name, tc := range map[string]struct {
		capabilities   string
		live, replayed []string
	}{
		"A37/nothing":    {nothing, unasked, []string{plan, own}},
		"A37/everything": {all, everyKind, without(recorded, future)},
		"A37/notices": {`{"session":{"notices":{}}}`, []string{plan, notice, future, own},
			[]string{plan, own}},
		"A37/compaction": {`{"session":{"compaction":{}}}`,
			[]string{plan, compaction, future, summary, own},
			[]string{plan, compaction, summary, own}},
		"A37/plans": {`{"plan":{}}`, []string{plan, future, planUpdate, own, planRemoved},
			[]string{plan, planUpdate, own, planRemoved}},
		"A37/subagents": {`{"subagents":{}}`, []string{plan, future, own, sentWhole, sentChunk},
			[]string{plan, own, sentWhole, sentChunk}},
		"A37/a later version": {`{"session":{"future":{}}}`, unasked, unasked},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(t)
			first := connect(t, acp.Options{Store: store,
				Backend: using(&speaking{updates: everyKind})})
			first.declaring(tc.capabilities)
			a := folder(t)
			id := first.open(a)
			first.call("session/prompt", promptParams(id, "go"))
			require.Equal(t, tc.live, shown(t, first.messages(), id)[1:], "behind the title")
			first.leave()

			second := connect(t, acp.Options{Store: withNotices{store}, Backend: using(&scripted{})})
			second.declaring(tc.capabilities)
			second.call("session/load", rootsParams(id, a))
			require.Equal(t, tc.replayed, shown(t, second.messages(), id)[1:], "behind the prompt")
			require.Len(t, updatesOf(t, store, id), 1+len(recorded)+1, "the prompt and the end of the turn too")
		})
	}
}

// Content of a tool call that needs a capability is left out for a client that has not declared it,
// and everything else stays as it is. A terminal exists in one client only, and is not replayed.
//
// Clause A37.
func TestToolCallContentNeedsCapabilities(t *testing.T) {
	const (
		said     = `{"type":"content","content":{"type":"text","text":"\u0073ession"}}`
		session  = `{"sessionId":"s", "type":"session"}`
		terminal = `{"type":"\u0074erminal","terminalId":"t"}`
		later    = `{"type":"later","x":1.0}`
		call     = `{"sessionUpdate":"tool_call","toolCallId":"c","x":1.0,"content":[`
		change   = `{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[`
	)
	list := func(start string, parts ...string) string {
		return start + strings.Join(parts, ",") + "]}"
	}
	sent := []string{list(call, said, session, terminal, later), list(change, session)}
	plain := []string{list(call, said, later), list(change)}
	withTerminal := []string{list(call, said, terminal, later), list(change)}
	for name, tc := range map[string]struct {
		capabilities   string
		live, replayed []string
	}{
		"A37/nothing":   {`{}`, plain, plain},
		"A37/terminals": {`{"terminal":true}`, withTerminal, plain},
		"A37/Claude":    {`{"_meta":{"terminal_output":true}}`, withTerminal, plain},
		"A37/everything": {`{"terminal":true,"subagents":{}}`, sent,
			[]string{list(call, said, session, later), list(change, session)}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(t)
			first := connect(t, acp.Options{Store: store, Backend: using(&speaking{updates: sent})})
			first.declaring(tc.capabilities)
			a := folder(t)
			id := first.open(a)
			first.call("session/prompt", promptParams(id, "go"))
			require.Equal(t, tc.live, shown(t, first.messages(), id)[1:], "behind the title")
			first.leave()

			second := connect(t, acp.Options{Store: store, Backend: using(&scripted{})})
			second.declaring(tc.capabilities)
			second.call("session/load", rootsParams(id, a))
			require.Equal(t, tc.replayed, shown(t, second.messages(), id)[1:3], "behind the prompt")
		})
	}
}

// What a backend replays is meant for this client.
//
// Clause A37.
func TestUpdatesInBackendReplay(t *testing.T) {
	store := memstore.New(t)
	r := &replayer{}
	r.opened = func(a backend.Activation, h backend.Host) {
		if a.Cause != backend.Load {
			return
		}
		require.NoError(t, h.Replay(t.Context(), update(`{"update":`+newer+`}`)))
	}
	c := connect(t, acp.Options{Store: store, Backend: using(r)})
	c.declaring(nothing)
	a := folder(t)
	id := c.open(a)
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{newer}, shown(t, c.messages(), id))
	require.Len(t, updatesOf(t, store, id), 1)
}

func without(all []string, left ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		return slices.Contains(left, s)
	})
}

// A client that takes over a running turn is sent what it has declared itself, not what the client
// before it has.
//
// Clause A37.
func TestUpdatesAfterJoin(t *testing.T) {
	dir := folder(t)
	s, _ := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	connect := func(capabilities string) *client {
		c := connectTo(t, s, acp.Peer{Principal: "ann", Remote: true})
		c.declaring(capabilities)
		return c
	}
	first := connect(all)
	id := first.open(dir)
	const subagent = `{"sessionUpdate":"tool_call","toolCallId":"c","content":[` +
		`{"type":"session","sessionId":"s"}]}`
	for _, u := range []string{plan, compaction, own, notice} {
		first.call("session/prompt", promptParams(id, "info "+u))
	}
	first.beginTurn(id, "wait", "waiting")
	first.leave()

	second := connect(nothing)
	result := second.call("session/load", rootsParams(id, dir))
	require.Contains(t, string(result), `"turn":{"running":true}`)
	got := shown(t, second.messages(), id)
	require.Subset(t, got, []string{plan, own})
	second.send(notification("session/cancel", idParams(id)))
	second.await(0, ended(id))
	for _, u := range []string{summary, notice, planUpdate, future, subagent, plan} {
		second.call("session/prompt", promptParams(id, "info "+u))
	}
	got = shown(t, second.messages(), id)
	require.Contains(t, got, plan)
	require.Contains(t, got, strings.Replace(subagent, `{"type":"session","sessionId":"s"}`, "", 1))
	require.NotContains(t, got, future, "the agent knows the first client only")
	require.Empty(t, slices.DeleteFunc(got, func(u string) bool {
		return !slices.Contains([]string{compaction, notice, summary, planUpdate}, u)
	}))
	second.beginTurn(id, "wait", "waiting")
	second.leave()

	third := connect(all)
	third.call("session/load", rootsParams(id, dir))
	require.Subset(t, shown(t, third.messages(), id),
		[]string{plan, compaction, own, summary, planUpdate})
	require.NotContains(t, shown(t, third.messages(), id), notice)
	third.send(notification("session/cancel", idParams(id)))
	third.await(0, ended(id))
}
