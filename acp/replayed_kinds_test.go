package acp_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// speaking is a scripted runtime that answers a prompt with the updates that a test gives.
type speaking struct {
	scripted
	updates []string
}

func (r *speaking) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	return &speakingSession{scriptedSession{runtime: &r.scripted, host: h}, r}, backend.Opened{}, nil
}

type speakingSession struct {
	scriptedSession
	speaking *speaking
}

func (s *speakingSession) Prompt(ctx context.Context, _ backend.Raw, u backend.Updates) backend.Work {
	return func() (backend.Raw, error) {
		for _, update := range s.speaking.updates {
			if err := u.Update(ctx, backend.Update(`{"update":`+update+`}`)); err != nil {
				return nil, err
			}
		}
		return endTurn, nil
	}
}

// shown are the updates of a session among messages, each as it came.
func shown(t *testing.T, messages []message, id string) []string {
	t.Helper()
	all := []string{}
	for _, m := range messages {
		var p struct {
			SessionID string
			Update    json.RawMessage
		}
		if m.Method == "session/update" {
			require.NoError(t, json.Unmarshal(m.Params, &p))
			require.Equal(t, id, p.SessionID)
			all = append(all, string(p.Update))
		}
	}
	return all
}

func TestA27_EachKindOfUpdateIsReplayedOrSentAsItIsNow(t *testing.T) {
	history := []string{
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"plan","entries":[{"content":"do it","priority":"high","status":"pending"}]}`,
		`{"sessionUpdate":"tool_call","toolCallId":"done","title":"Done","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"done","status":"completed"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"failed","title":"Failed","status":"failed"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"open","title":"Open"}`,
		`{"sessionUpdate":"_future_kind","anything":[1e5,{"b":1,"a":2}]}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"there"},"_meta":{"x":1}}`,
	}
	state := func(n string) []string {
		return []string{
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"c` + n + `","description":"d"}]}`,
			`{"sessionUpdate":"current_mode_update","currentModeId":"m` + n + `"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[],"_meta":{"n":` + n + `}}`,
			`{"sessionUpdate":"usage_update","used":` + n + `,"size":9}`,
		}
	}
	r, store := &speaking{updates: slices.Concat(state("1"), history, state("2"))}, sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	require.Equal(t, "end_turn", c.try("session/prompt", promptParams(id, "go")).stopReason(t))
	require.Subset(t, shown(t, c.messages(), id), r.updates, "each was shown when it came")
	c.leave()

	d := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	d.initialize()
	before := len(d.messages())
	d.call("session/resume", rootsParams(id, a))
	d.call("session/fork", rootsParams(id, a))
	for _, m := range d.messages()[before:] {
		for _, update := range history {
			require.NotContains(t, string(m.Params), update, "a resume and a fork replay nothing")
		}
	}
	before = len(d.messages())
	load, line := d.request("session/load", rootsParams(id, a))
	d.send(line)
	require.Nil(t, d.response(load).Error)
	_, answered := d.await(before, isResponse(load))
	got := shown(t, d.messages()[before:answered], id)
	require.Len(t, got, 1+len(history)+1+4)
	require.JSONEq(t, `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"go"}}`, got[0])
	require.Equal(t, history, got[1:1+len(history)], "in order, byte by byte")
	require.JSONEq(t, `{"sessionUpdate":"tool_call_update","toolCallId":"open","status":"failed"}`, got[1+len(history)])
	require.ElementsMatch(t, state("2"), got[2+len(history):], "once, as they are now")
	d.call("session/list", `{}`)
	for _, m := range d.messages()[answered+1:] {
		require.NotEqual(t, "session/update", m.Method, "all of it came before the answer")
	}
}

// stating is a speaking runtime whose lifecycle responses say the mode and the options.
type stating struct{ speaking }

func (r *stating) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	s, opened, err := r.speaking.Open(ctx, a, h)
	opened.Result = backend.Raw(`{"modes":{"currentModeId":"m","availableModes":[]},"configOptions":[]}`)
	return s, opened, err
}

func TestA27_WhatTheResponseSaysIsNotSentAsWell(t *testing.T) {
	c := connect(t, acp.Options{Backend: func() backend.Backend {
		return &stating{speaking{updates: []string{
			`{"sessionUpdate":"current_mode_update","currentModeId":"old"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[]}`,
			`{"sessionUpdate":"usage_update","used":1,"size":9}`,
		}}}
	}})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	require.Equal(t, "end_turn", c.try("session/prompt", promptParams(id, "go")).stopReason(t))
	before := len(c.messages())
	require.Contains(t, string(c.call("session/load", rootsParams(id, a))), `"currentModeId":"m"`)
	require.Equal(t, []string{
		`{"sessionUpdate":"user_message_chunk","content":{"text":"go","type":"text"}}`,
		`{"sessionUpdate":"usage_update","used":1,"size":9}`,
	}, shown(t, c.messages()[before:], id))
}
