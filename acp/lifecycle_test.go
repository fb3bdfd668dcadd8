package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestA1_InitializeAdvertisesWhatIsImplemented(t *testing.T) {
	c := connect(t, acp.Options{Version: "1.2.3"})
	var result struct {
		ProtocolVersion   int
		AgentInfo         struct{ Name, Version string }
		AuthMethods       []any
		X                 int
		AgentCapabilities struct {
			LoadSession         bool
			McpCapabilities     struct{ Http, Sse *bool }
			PromptCapabilities  struct{ Image bool }
			SessionCapabilities map[string]json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(c.initialize(), &result))
	require.Equal(t, 1, result.ProtocolVersion)
	require.Equal(t, "1.2.3", result.AgentInfo.Version)
	require.NotNil(t, result.AuthMethods)
	require.Equal(t, 1, result.X, "what the runtime says is passed on")
	require.True(t, result.AgentCapabilities.PromptCapabilities.Image)
	require.False(t, *result.AgentCapabilities.McpCapabilities.Http)
	for name, value := range result.AgentCapabilities.SessionCapabilities {
		require.Equal(t, "{}", string(value), name)
		m := c.try("session/"+name, `{}`)
		if name != "additionalDirectories" && name != "list" && name != "x" {
			require.NotNil(t, m.Error, name)
			require.Equal(t, wire.CodeInvalidParams, m.Error.Code, "%s is advertised and not served", name)
		}
	}
	for _, name := range []string{"additionalDirectories", "list", "close", "resume", "fork", "delete"} {
		require.Contains(t, result.AgentCapabilities.SessionCapabilities, name)
	}
	require.True(t, result.AgentCapabilities.LoadSession)
}

func TestA1_WhatARuntimeRefusesIsNeitherAdvertisedNorServed(t *testing.T) {
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime {
		return &scripted{refuses: []runtime.Cause{runtime.Load, runtime.Fork}}
	}})
	var result struct {
		AgentCapabilities struct {
			LoadSession         bool
			SessionCapabilities map[string]json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(c.initialize(), &result))
	require.False(t, result.AgentCapabilities.LoadSession)
	require.NotContains(t, result.AgentCapabilities.SessionCapabilities, "fork")
	require.Contains(t, result.AgentCapabilities.SessionCapabilities, "resume")
	a := folder(t)
	id := c.open(a)
	require.Equal(t, wire.CodeMethodNotFound, c.try("session/load", rootsParams(id, a)).Error.Code)
	require.Equal(t, wire.CodeMethodNotFound, c.try("session/fork", rootsParams(id, a)).Error.Code)
	c.call("session/resume", rootsParams(id, a))
}

func TestW10_Versions(t *testing.T) {
	for _, version := range []string{"0", "1", "2", "65535"} {
		c := connect(t, acp.Options{})
		var result struct{ ProtocolVersion int }
		require.NoError(t, json.Unmarshal(c.call("initialize", `{"protocolVersion":`+version+`,"info":{},"_meta":{"a":1}}`), &result))
		require.Equal(t, 1, result.ProtocolVersion)
	}
	for params, reason := range map[string]string{`{}`: "required", `{"protocolVersion":"1"}`: "type", `{"protocolVersion":null}`: "null"} {
		require.Equal(t, reason, connect(t, acp.Options{}).try("initialize", params).reason(t))
	}
}

func TestW10_InitializeComesFirstAndOnce(t *testing.T) {
	c := connect(t, acp.Options{})
	m := c.try("session/new", rootsParams("", folder(t)))
	require.Equal(t, wire.CodeInvalidRequest, m.Error.Code)
	require.Equal(t, "not_initialized", m.reason(t))
	c.initialize()
	require.Equal(t, wire.CodeInvalidRequest, c.try("initialize", `{"protocolVersion":1}`).Error.Code)
	c.open(folder(t))
}

func TestW10_ASessionRequestRightBehindInitializeIsServed(t *testing.T) {
	c := connect(t, acp.Options{})
	first, initialize := c.request("initialize", `{"protocolVersion":1}`)
	second, open := c.request("session/new", rootsParams("", folder(t)))
	c.send(initialize, open)
	require.Nil(t, c.response(first).Error)
	require.Nil(t, c.response(second).Error)
}

func TestA9_NewSessionHasTheGivenRootsOrNone(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d := folder(t), folder(t), folder(t)
	bare, multi := c.open(a), c.open(a, d, b)
	require.Equal(t, []string{}, c.find(bare).AdditionalDirectories)
	require.Equal(t, []string{d, b}, c.find(multi).AdditionalDirectories)
}

// texts runs a prompt and returns what the agent said.
func (c *client) texts(id, prompt string) []string {
	c.t.Helper()
	before := len(texts(c.messages(), id))
	require.Equal(c.t, "end_turn", c.try("session/prompt", promptParams(id, prompt)).stopReason(c.t))
	return texts(c.messages(), id)[before:]
}

// find returns a session of the list.
func (c *client) find(id string) listed {
	c.t.Helper()
	for _, s := range c.list(`{}`) {
		if s.SessionID == id {
			return s
		}
	}
	require.Fail(c.t, "not listed", id)
	return listed{}
}

func TestA15_ListedRootsAreOrderedSpelledAndNeverNull(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a+"/./", b+"//", a, b)
	got := c.find(id)
	require.Equal(t, a, got.Cwd)
	require.Equal(t, []string{b}, got.AdditionalDirectories)
	require.Contains(t, string(c.call("session/list", `{"additionalDirectories":[]}`)), `"sessions":[]`)
	c.open(a)
	require.Contains(t, string(c.call("session/list", `{"additionalDirectories":[]}`)), `"additionalDirectories":[]`)
}

func TestA16_ListFilters(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b, d := folder(t), folder(t), folder(t)
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(a, link))
	none, ordered, swapped, other := c.open(a), c.open(a, b, d), c.open(a, d, b), c.open(b, d)
	for name, tc := range map[string]struct {
		params string
		want   []string
	}{
		"none":           {`{}`, []string{other, swapped, ordered, none}},
		"null":           {`{"cwd":null,"cursor":null}`, []string{other, swapped, ordered, none}},
		"cwd":            {encode(map[string]any{"cwd": a}), []string{swapped, ordered, none}},
		"cwd by alias":   {encode(map[string]any{"cwd": link}), []string{swapped, ordered, none}},
		"cwd normalised": {encode(map[string]any{"cwd": a + "//."}), []string{swapped, ordered, none}},
		"exact order":    {encode(map[string]any{"additionalDirectories": []string{b, d}}), []string{ordered}},
		"both":           {encode(map[string]any{"cwd": b, "additionalDirectories": []string{d}}), []string{other}},
		"both, no match": {encode(map[string]any{"cwd": a, "additionalDirectories": []string{d}}), nil},
		"cwd dropped":    {encode(map[string]any{"cwd": a, "additionalDirectories": []string{b, a, d}}), []string{ordered}},
		"empty":          {`{"additionalDirectories":[]}`, []string{none}},
		"missing":        {`{"cwd":"/does/not/exist"}`, nil},
	} {
		var got []string
		for _, s := range c.list(tc.params) {
			got = append(got, s.SessionID)
		}
		require.ElementsMatch(t, tc.want, got, name)
	}
	for params, reason := range map[string]string{
		`{"additionalDirectories":null}`:    "null",
		`{"additionalDirectories":[null]}`:  "null",
		`{"additionalDirectories":["rel"]}`: "relative",
		`{"cwd":"rel"}`:                     "relative",
		`{"cwd":1}`:                         "type",
		`{"cursor":1}`:                      "type",
		`{"cursor":""}`:                     "cursor",
		`{"cursor":"x"}`:                    "cursor",
		`{"CWD":"/x"}`:                      "wrong_case",
	} {
		m := c.try("session/list", params)
		require.Equal(t, reason, m.reason(t), params)
		require.Equal(t, wire.CodeInvalidParams, m.Error.Code, params)
	}
}

func TestA18_ListPages(t *testing.T) {
	c := connect(t, acp.Options{MaxSessions: 200})
	c.initialize()
	a := folder(t)
	want := map[string]bool{}
	for range 120 {
		want[c.open(a)] = true
	}
	seen, cursor, pages := map[string]bool{}, "", 0
	for {
		params := map[string]any{"cwd": a}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Sessions   []listed
			NextCursor string
		}
		require.NoError(t, json.Unmarshal(c.call("session/list", encode(params)), &page))
		for _, s := range page.Sessions {
			require.False(t, seen[s.SessionID], "listed twice")
			seen[s.SessionID] = true
		}
		if pages++; page.NextCursor == "" {
			break
		}
		require.Len(t, page.Sessions, 50)
		cursor = page.NextCursor
		require.Equal(t, "cursor", c.try("session/list", encode(map[string]any{"cursor": cursor})).reason(t))
	}
	require.Equal(t, 3, pages)
	require.Equal(t, want, seen)
}

func TestA5_NothingHappensWhenARequestIsWrong(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime { return r }})
	c.initialize()
	a := folder(t)
	file := filepath.Join(a, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	m := c.try("session/new", encode(map[string]any{"cwd": "rel", "additionalDirectories": []any{"", a, "x", nil}}))
	require.Equal(t, wire.CodeInvalidParams, m.Error.Code)
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
	r := &scripted{refuse: wire.Errorf(-32000, "log in first")}
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime { return r }})
	c.initialize()
	require.Equal(t, -32000, c.try("session/new", rootsParams("", folder(t))).Error.Code)
	require.Empty(t, c.list(`{}`))
}

func TestA5_TheNumberOfActiveSessionsIsBounded(t *testing.T) {
	c := connect(t, acp.Options{MaxSessions: 2})
	c.initialize()
	a := folder(t)
	c.open(a)
	second := c.open(a)
	require.Equal(t, "too_many_sessions", c.try("session/new", rootsParams("", a)).reason(t))
	c.call("session/close", idParams(second))
	c.open(a)
}

func TestA10_LoadAndResumeActivateOnlyTheGivenRoots(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.initialize()
			a, b, d := folder(t), folder(t), folder(t)
			id := c.open(a, b)
			c.call(method, rootsParams(id, a, d, b))
			require.Equal(t, []string{d, b}, c.find(id).AdditionalDirectories)
			require.Contains(t, c.texts(id, "roots")[0], d)
			c.call(method, rootsParams(id, a))
			require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13")
			require.NotContains(t, c.texts(id, "roots")[0], b)
			c.call(method, rootsParams(id, a, []string{}...))
			require.Equal(t, []string{}, c.find(id).AdditionalDirectories)
		})
	}
}

func TestA11_CwdMustBeTheSessions(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(a, link))
	id := c.open(a, b)
	m := c.try("session/load", rootsParams(id, b))
	require.Equal(t, wire.CodeInvalidParams, m.Error.Code)
	require.Equal(t, "cwd_mismatch", m.reason(t))
	require.Contains(t, string(m.Error.Data), a)
	require.Equal(t, []string{b}, c.find(id).AdditionalDirectories, "nothing changed")
	c.call("session/load", rootsParams(id, link))
	require.Equal(t, a, c.find(id).Cwd, "A17: the spelling given at new is kept")
}

func TestA12_LoadOfALiveSession(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime { return r }})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))

	m := c.try("session/load", rootsParams(id, a, "/does/not/exist"))
	require.Equal(t, "missing", m.reason(t))
	require.Contains(t, texts(c.messages(), id), "waiting")

	load, line := c.request("session/load", rootsParams(id, a, b))
	c.send(line)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(load).Error)
	_, promptAt := c.await(0, isResponse(prompt))
	_, loadAt := c.await(0, isResponse(load))
	require.Less(t, promptAt, loadAt)
	require.Contains(t, c.texts(id, "roots")[0], b)
	replayed := texts(c.messages()[promptAt:loadAt], id)
	require.Equal(t, []string{"waitinglast words"}, []string{strings.Join(replayed, "")}, "the ended turn is replayed whole")
	require.Contains(t, r.noted(), "cancel ")
}

func said(text string) func(message) bool {
	return func(m message) bool { return strings.Contains(string(m.Params), `"text":"`+text+`"`) }
}

func isResponse(id string) func(message) bool {
	return func(m message) bool { return m.Method == "" && string(m.ID) == id }
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

func TestA27_LoadReplaysAndResumeDoesNot(t *testing.T) {
	store := sessionstore.NewMemory()
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	c.texts(id, "tool")
	c.texts(id, "say two")
	c.leave()

	d := connect(t, acp.Options{Store: store})
	d.initialize()
	d.call("session/resume", rootsParams(id, a))
	require.Empty(t, texts(d.messages(), id))
	load := d.try("session/load", rootsParams(id, a))
	require.Nil(t, load.Error)
	require.Equal(t, []string{"one", "two"}, texts(d.messages(), id))
	require.Contains(t, encode(d.messages()), `"sessionUpdate":"user_message_chunk"`)
	require.Contains(t, encode(d.messages()), `"status":"failed"`)
}

func TestA28_CloseKeepsTheSessionAndDeleteRemovesIt(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Runtime: func() runtime.Runtime { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	require.Equal(t, "{}", string(c.call("session/close", idParams(id))))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	_, promptAt := c.await(0, isResponse(prompt))
	require.Greater(t, len(c.messages()), promptAt+1)
	require.Contains(t, r.noted(), "close")
	require.Equal(t, id, c.find(id).SessionID)

	for _, method := range []string{"session/prompt", "session/set_mode", "session/set_config_option"} {
		m := c.try(method, promptParams(id, "x"))
		require.Equal(t, -32002, m.Error.Code, method)
		require.Equal(t, "not_active", m.reason(t), method)
	}
	require.Equal(t, "{}", string(c.call("session/close", idParams(id))), "inactive")
	require.Equal(t, "{}", string(c.call("session/close", idParams("sess_unknown"))), "unknown")
	require.Equal(t, "{}", string(c.call("session/delete", idParams("sess_unknown"))), "unknown")

	c.call("session/resume", rootsParams(id, a))
	prompt, line = c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	require.Equal(t, "{}", string(c.call("session/delete", idParams(id))))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Empty(t, c.list(`{}`))
	for _, m := range []message{
		c.try("session/load", rootsParams(id, a)), c.try("session/resume", rootsParams(id, a)),
		c.try("session/fork", rootsParams(id, a)), c.try("session/prompt", promptParams(id, "x")),
	} {
		require.Equal(t, -32002, m.Error.Code)
		require.Equal(t, "not_found", m.reason(t))
	}
}

func TestA29_TitleAndUpdatedAt(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	created := c.find(id)
	require.Empty(t, created.Title)
	require.True(t, strings.HasSuffix(created.UpdatedAt, "Z"), created.UpdatedAt)
	c.texts(id, "say hi\nsecond line "+strings.Repeat("x", 200))
	require.Equal(t, "say hi", c.find(id).Title)
	require.Contains(t, encode(c.messages()), `"title":"say hi"`)
	prompted := c.find(id).UpdatedAt
	c.call("session/resume", rootsParams(id, a))
	c.call("session/close", idParams(id))
	require.Equal(t, prompted, c.find(id).UpdatedAt)
	c.call("session/resume", rootsParams(id, a))
	c.texts(id, "title Better name")
	require.Equal(t, "Better name", c.find(id).Title)
}

func TestA31_SessionsBelongToTheirAgent(t *testing.T) {
	store := sessionstore.NewMemory()
	one := connect(t, acp.Options{Store: store})
	one.initialize()
	a := folder(t)
	id := one.open(a)
	two := connect(t, acp.Options{Store: store, Runtime: func() runtime.Runtime { return &scripted{kind: "other"} }})
	two.initialize()
	require.Empty(t, two.list(`{}`))
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		m := two.try(method, rootsParams(id, a))
		require.Equal(t, wire.CodeInvalidParams, m.Error.Code)
		require.Equal(t, "other_agent", m.reason(t))
		require.Contains(t, m.Error.Message, "acp-agent")
	}
	require.Equal(t, id, one.find(id).SessionID)
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

func TestS3_AnotherProcessTakesTheSession(t *testing.T) {
	store := sessionstore.NewMemory()
	old, newer := connect(t, acp.Options{Store: store}), connect(t, acp.Options{Store: store})
	old.initialize()
	newer.initialize()
	a := folder(t)
	id := old.open(a)
	old.texts(id, "say mine")
	newer.call("session/load", rootsParams(id, a))
	m := old.try("session/prompt", promptParams(id, "say lost"))
	require.NotNil(t, m.Error)
	require.Equal(t, "fenced", m.reason(t))
	require.Contains(t, m.Error.Message, "another window")
	require.Equal(t, []string{"more"}, newer.texts(id, "say more"))
	m = old.try("session/prompt", promptParams(id, "say again"))
	require.Equal(t, -32002, m.Error.Code, "its roots were freed")
}
