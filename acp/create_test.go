package acp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestA9_NewSessionHasTheGivenRootsOrNone(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d := folder(t), folder(t), folder(t)
	bare, multi := c.open(a), c.open(a, d, b)
	require.Equal(t, []string{}, c.find(bare).AdditionalDirectories)
	require.Equal(t, []string{d, b}, c.find(multi).AdditionalDirectories)
}

func TestA5_NothingHappensWhenARequestIsWrong(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	file := filepath.Join(a, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	m := c.try("session/new", encode(map[string]any{"cwd": "rel", "additionalDirectories": []any{"", a, "x", nil}}))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	var data struct {
		Violations []struct {
			Field  string
			Index  *int
			Reason string
		}
	}
	require.NoError(t, json.Unmarshal(m.Error.Data, &data))
	got := map[string]bool{}
	for _, v := range data.Violations {
		got[v.Field+":"+v.Reason] = true
	}
	require.Equal(t, map[string]bool{"cwd:relative": true, "additionalDirectories:null": true, "additionalDirectories:empty": true, "additionalDirectories:relative": true, "mcpServers:required": true}, got)
	m = c.try("session/new", rootsParams("", a, "/does/not/exist", file))
	require.NoError(t, json.Unmarshal(m.Error.Data, &data))
	require.Len(t, data.Violations, 2)
	require.Empty(t, c.list(`{}`))
	require.Empty(t, r.noted())
}

func TestA5_ARuntimeThatRefusesLeavesNoTrace(t *testing.T) {
	r := &scripted{refuse: jsonrpc.Errorf(-32000, "log in first")}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	require.Equal(t, -32000, c.try("session/new", rootsParams("", folder(t))).Error.Code)
	require.Empty(t, c.list(`{}`))
}

func TestA5_TheNumberOfActiveSessionsIsBounded(t *testing.T) {
	c := connect(t, acp.Options{}.With(acp.Tuning{MaxSessions: 2}))
	c.initialize()
	a := folder(t)
	c.open(a)
	second := c.open(a)
	require.Equal(t, "too_many_sessions", c.try("session/new", rootsParams("", a)).reason(t))
	c.call("session/close", idParams(second))
	c.open(a)
}

func TestA14_ForkReplacesRootsAndCopiesFinishedTurns(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	source := c.open(a, b)
	c.texts(source, "say one")
	_, line := c.request("session/prompt", promptParams(source, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	var result struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", encode(map[string]any{"sessionId": source, "cwd": b})), &result))
	fork := result.SessionID
	require.NotEqual(t, source, fork)
	require.Equal(t, b, c.find(fork).Cwd)
	require.Equal(t, []string{}, c.find(fork).AdditionalDirectories)
	require.Equal(t, []string{b}, c.find(source).AdditionalDirectories)
	require.Empty(t, texts(c.messages(), fork), "a fork replays nothing")
	c.call("session/load", rootsParams(fork, b))
	require.Equal(t, []string{"one"}, texts(c.messages(), fork))
}

func TestA21_ResponsesCarryNoRoots(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a, b)
	fork := c.call("session/fork", rootsParams(id, a, b))
	for _, result := range []json.RawMessage{
		c.call("session/new", rootsParams("", a, b)), c.call("session/load", rootsParams(id, a, b)),
		c.call("session/resume", rootsParams(id, a, b)), fork,
	} {
		require.NotContains(t, string(result), a)
		require.NotContains(t, string(result), b)
		require.Contains(t, string(result), `"opened":true`, "what the runtime adds is there")
	}
	c.texts(id, "title T")
	for _, m := range c.messages() {
		if strings.Contains(string(m.Params), "session_info_update") {
			require.NotContains(t, string(m.Params), "cwd")
			require.NotContains(t, string(m.Params), "additionalDirectories")
		}
	}
}

func TestW5_CreationsWaitForNoOtherSession(t *testing.T) {
	r := &holding{hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id, source := c.open(a), c.open(a)
	turn, line := c.request("session/prompt", promptParams(source, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	load, loading := c.request("session/load", rootsParams(id, a))
	created, creation := c.request("session/new", rootsParams("", a))
	forked, fork := c.request("session/fork", rootsParams(source, a))
	again, forkOfLoading := c.request("session/fork", rootsParams(id, a))
	c.send(loading, creation, fork, forkOfLoading)
	for _, id := range []string{created, forked, again} {
		require.Nil(t, c.response(id).Error)
	}
	require.Len(t, c.list(`{}`), 5, "a list shows what was answered before it was read")
	for _, m := range c.messages() {
		require.False(t, isResponse(load)(m) || isResponse(turn)(m))
	}
	close(r.hold)
	require.Nil(t, c.response(load).Error)
	c.send(notification("session/cancel", idParams(source)))
	c.response(turn)
}

// holding is a runtime whose loads wait.
type holding struct {
	scripted
	hold chan struct{}
}

func (r *holding) Open(ctx context.Context, a backend.Activation, h backend.Host) (backend.Session, backend.Opened, error) {
	if a.Cause == backend.Load {
		<-r.hold
	}
	return r.scripted.Open(ctx, a, h)
}
