package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/explore"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Clause A5.
func TestFailedOpenHasNoEffect(t *testing.T) {
	r := &scripted{refuse: jsonrpc.Errorf(-32000, "log in first")}
	c := start(t, acp.Options{Backend: using(r)})
	require.Equal(t, -32000, c.try("session/new", rootsParams("", folder(t))).Error.Code)
	require.Empty(t, c.list(`{}`))
}

// Clause A5.
func TestMaxSessions(t *testing.T) {
	c := start(t, acp.Options{}.With(acp.Tuning{MaxSessions: 2}))
	a := folder(t)
	c.open(a)
	second := c.open(a)
	require.Equal(t, "too_many_sessions", c.try("session/new", rootsParams("", a)).reason(t))
	c.call("session/close", idParams(second))
	c.open(a)
}

// Clause W5.
func TestNewWaitsForNoSession(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id, source := c.open(a), c.open(a)
	turn := c.beginTurn(source, "wait", "waiting")
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

// What is wrong in one stage is told alone, though the request is wrong in every later one too.
//
// Clause A5.
func TestOrderOfChecks(t *testing.T) {
	a, denied := folder(t), folder(t)
	deny, err := workspace.ParseDir(denied)
	require.NoError(t, err)
	r, store := &scripted{}, memstore.New(t)
	other := start(t, acp.Options{Store: store, Backend: using(&scripted{kind: "other"})})
	foreign := other.open(a)
	c := start(t, acp.Options{
		Store: store, Backend: using(r),
		Workspace: workspace.Options{MaxRoots: 3,
			Policy: workspace.Policy{Deny: []workspace.Dir{deny}}},
	})
	id := c.open(a)
	before := string(c.call("session/list", `{}`))

	missing, file, nowhere := filepath.Join(a, "missing"), filepath.Join(a, "file"),
		filepath.Join(a, "nowhere")
	write(t, a, "file", "")
	write(t, denied, "below/file", "")
	below := filepath.Join(denied, "below")
	link := filepath.Join(folder(t), "link")
	linkTo(t, link, below)
	many := []string{missing, file, denied}
	for _, step := range []struct {
		name       string
		methods    []string
		params     string
		violations []string
		reason     string
	}{
		{"1 before 2: shape, then the id", opening[1:],
			altered(rootsParams("unknown", nowhere, many...), "additionalDirectories", `["rel"]`),
			[]string{"additionalDirectories[0] relative"}, ""},
		{"1 before 2: servers, then the id", opening[1:],
			altered(rootsParams("unknown", nowhere, many...), "mcpServers", `{}`),
			[]string{"mcpServers type"}, ""},
		{"1: an id that is none, with the rest", opening[1:],
			altered(altered(rootsParams(id, "rel"), "sessionId", `7`), "mcpServers", `{}`),
			[]string{"sessionId type", "cwd relative", "mcpServers type"}, ""},
		{"2 before 3: an unknown id, then cwd", opening[1:],
			rootsParams("unknown", nowhere, many...), nil, "not_found"},
		{"2 before 3: another agent's, then cwd", opening[1:],
			rootsParams(foreign, nowhere, many...), []string{"sessionId other_agent"}, ""},
		{"3 before 4: cwd, then the count", opening[1:3], rootsParams(id, nowhere, many...),
			[]string{"cwd cwd_mismatch"}, ""},
		{"4 before 5: the count, then the disk", opening, rootsParams(id, a, many...),
			[]string{"additionalDirectories too_many"}, ""},
		{"5 before 6: the disk, then the policy", opening, rootsParams(id, a, missing, denied),
			[]string{"additionalDirectories[0] missing"}, ""},
		{"5: all of the disk", opening, rootsParams(id, a, missing, file),
			[]string{"additionalDirectories[0] missing", "additionalDirectories[1] not_directory"},
			""},
		{"6: all of the policy, by the real paths", opening, rootsParams(id, a, denied, link),
			[]string{"additionalDirectories[0] denied", "additionalDirectories[1] denied"}, ""},
	} {
		for _, method := range step.methods {
			t.Run(step.name+"/"+method, func(t *testing.T) {
				m := c.try(method, step.params)
				if step.reason != "" {
					require.Equal(t, step.reason, m.reason(t))
					require.Equal(t, -32002, m.Error.Code)
					return
				}
				require.Equal(t, step.violations, m.findings(t))
				require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			})
		}
	}
	require.Equal(t, before, string(c.call("session/list", `{}`)))
	require.Len(t, r.noted(), 1, "only the session that was made")
}

// An error about a session's state has a reason and no violations, and names the session.
//
// Clause A5.
func TestStateErrors(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	prompt := c.beginTurn(id, "wait", "waiting")
	queued, m := c.busy(id)
	require.JSONEq(t, `{"reason":"turn_in_progress","sessionId":"`+id+`"}`, string(m.Error.Data))
	require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code)
	c.call("session/close", idParams(id))
	c.response(prompt)
	require.Equal(t, "cancelled", c.response(queued).stopReason(t))
	for _, method := range []string{"session/prompt", "session/set_mode",
		"session/set_config_option"} {
		m = c.try(method, promptParams(id, "say x"))
		require.JSONEq(t, `{"reason":"not_active","sessionId":"`+id+`"}`, string(m.Error.Data),
			method)
		require.Equal(t, -32002, m.Error.Code)
		require.Contains(t, m.Error.Message, "load or resume it first")
	}
}

// opening are the methods that make a session active; all but the first name one that is stored.
var opening = []string{"session/new", "session/load", "session/resume", "session/fork"}

// findings are an error's violations, each as "field[index] reason", and nothing else in its data.
func (m message) findings(t tester) []string {
	t.Helper()
	require.NotNil(t, m.Error, "not refused: %s", m.Result)
	var data map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(m.Error.Data, &data), m.Error.Message)
	require.Len(t, data, 1)
	var violations []struct {
		Field  string
		Index  *int
		Reason string
	}
	require.NoError(t, json.Unmarshal(data["violations"], &violations))
	var all []string
	for _, v := range violations {
		at := v.Field
		if v.Index != nil {
			at = fmt.Sprintf("%s[%d]", v.Field, *v.Index)
		}
		all = append(all, at+" "+v.Reason)
	}
	return all
}

// altered are the params of a request with a member set to raw JSON, or without it if that is "".
func altered(params, name, raw string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		panic(err)
	}
	if delete(members, name); raw != "" {
		members[name] = json.RawMessage(raw)
	}
	// Not encoded again: a lone surrogate would not stay one.
	text, separator := "{", ""
	for name, value := range members {
		text += separator + encode(name) + ":" + string(value)
		separator = ","
	}
	return text + "}"
}

// Whatever a method does with its roots, they are held to the same rules, and when one is broken
// nothing happens.
//
// Clauses A2, A3, A4, A5, A16.
func TestRootsInEveryMethod(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	a, b := folder(t), folder(t)
	id := c.open(a, b)
	c.texts(id, "say one")
	before, asked := string(c.call("session/list", `{}`)), r.noted()
	refused := func(method, params string, want ...string) {
		t.Helper()
		m := c.try(method, params)
		require.Equal(t, want, m.findings(t), "%s %s", method, params)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	}

	entries := map[string]string{
		"null": "null", "1": "type", "true": "type", "[]": "type", "{}": "type",
		`""`: "empty", `"rel"`: "relative", `"."`: "relative", `"/x\u0000"`: "nul",
		`"/\ud800"`: "encoding", `"/\udc00x"`: "encoding",
	}
	for _, method := range append(opening, "session/list") {
		params := rootsParams(id, a)
		if method == "session/list" {
			params = `{}`
		}
		t.Run("A3/"+method, func(t *testing.T) {
			for value, reason := range map[string]string{"null": "null", "{}": "type", `"` + b +
				`"`: "type", "1": "type", "false": "type"} {
				refused(method, altered(params, "additionalDirectories", value),
					"additionalDirectories "+reason)
			}
		})
		t.Run("A4/"+method, func(t *testing.T) {
			for value, reason := range entries {
				refused(method, altered(params, "additionalDirectories", `["`+b+`",`+value+`]`),
					"additionalDirectories[1] "+reason)
				if method != "session/list" || value != "null" {
					refused(method, altered(params, "cwd", value), "cwd "+reason)
				}
			}
			if method != "session/list" {
				refused(method, altered(params, "cwd", ""), "cwd required")
			}
		})
		t.Run("A5/"+method, func(t *testing.T) {
			refused(method, altered(altered(params, "cwd", `"rel"`), "additionalDirectories",
				`[7,"",null,"`+b+`","x"]`),
				"cwd relative", "additionalDirectories[0] type", "additionalDirectories[1] empty",
				"additionalDirectories[2] null", "additionalDirectories[4] relative")
		})
	}
	for _, method := range opening {
		t.Run("A6/"+method, func(t *testing.T) {
			missing := filepath.Join(a, "missing")
			refused(method, rootsParams(id, a, b, missing), "additionalDirectories[1] missing")
			require.Contains(t, c.try(method, rootsParams(id, a, b, missing)).Error.Message,
				missing)
		})
	}
	require.Equal(t, before, string(c.call("session/list", `{}`)),
		"A5: no session was made, and none changed")
	require.Equal(t, asked, r.noted(), "A5: the backend heard of nothing")
	require.Equal(t, []string{"[" + a + ", " + b + "]"}, c.texts(id, "roots"))
}

// However much is wrong with a request, the answer is small.
//
// Clause A5.
func TestViolationLimit(t *testing.T) {
	c := start(t, acp.Options{})
	a := folder(t)
	many := func(entry string) string {
		return "[" + strings.Repeat(entry+",", strictjson.MaxItems-1) + entry + "]"
	}
	for name, request := range map[string]struct{ method, params string }{
		"entries of the wrong type": {"session/new",
			altered(rootsParams("", a), "additionalDirectories", many("null"))},
		"entries without a path": {"session/new",
			altered(rootsParams("", a), "additionalDirectories", many(`""`))},
		"a filter": {"session/list", `{"additionalDirectories":` + many(`"x"`) +
			`}`},
		"servers": {"session/new",
			altered(rootsParams("", a), "mcpServers", many(`7`))},
	} {
		t.Run("A5/"+name, func(t *testing.T) {
			m := c.try(request.method, request.params)
			require.Len(t, m.findings(t), strictjson.MaxViolations)
			require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
			require.Contains(t, m.Error.Message, "and at least 99 more")
		})
	}
}

// Clause A5.
func TestTooManyMembersAreRefused(t *testing.T) {
	c := start(t, acp.Options{})
	m := c.try("session/new", "{"+strings.Repeat(`"a":1,`, strictjson.MaxItems)+`"b":2}`)
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
}

// patient is a scripted backend whose Open, once it is told to wait, does so as long as it may.
type patient struct {
	scripted
	waits  bool
	opened chan *workspace.Workspace
}

func (r *patient) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	if r.waits {
		r.opened <- h.Workspace()
		<-ctx.Done()
		return nil, backend.Opened{}, context.Cause(ctx)
	}
	return r.scripted.Open(ctx, a, h)
}

// Clause W6.
func TestCancelRequestDuringOpen(t *testing.T) {
	r := &patient{opened: make(chan *workspace.Workspace)}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{MaxSessions: 2}))
	a, b := folder(t), folder(t)
	id := c.open(a)
	for range 2 {
		for _, method := range opening {
			t.Run("W6/"+method, func(t *testing.T) {
				r.waits = true
				request := c.post(method, rootsParams(id, a, b))
				w := <-r.opened
				c.send(notification("$/cancel_request", `{"requestId":`+request+`}`))
				require.Equal(t, jsonrpc.CodeCancelled, c.response(request).Error.Code)
				r.waits = false
				_, err := w.Stat(b)
				require.ErrorIs(t, err, workspace.ErrClosed, "A5: it leaves nothing behind")
				require.Len(t, c.list(`{}`), 1)
				require.Equal(t, []string{"[" + a + "]"}, c.texts(id, "roots"),
					"A12: the session is as it was")
			})
		}
	}
}

// Clause S1.
func TestStateSavedWhileStoring(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	r := &scripted{}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) {
		host = h
		require.NoError(t, h.SaveState(t.Context(), []byte("early")))
	}
	late := func() { require.NoError(t, host.SaveState(t.Context(), []byte("late"))) }
	saved := func(id string) string {
		session, err := store.Get(t.Context(), sessionstore.ID(id))
		require.NoError(t, err)
		return string(session.State)
	}
	a := folder(t)
	early := c.open(a)
	require.Equal(t, "early", saved(early))
	store.creating = late
	id := c.open(a)
	require.Equal(t, "late", saved(id))
	store.activating = late
	c.call("session/load", rootsParams(early, a))
	require.Equal(t, "late", saved(early))
}

// Clause S3.
func TestFencedState(t *testing.T) {
	store := memstore.New(t)
	r := &scripted{}
	old := start(t, acp.Options{Store: store, Backend: using(r)})
	newer := start(t, acp.Options{Store: store})
	a := folder(t)
	id := old.open(a)
	old.call("_save", idParams(id))
	newer.call("session/load", rootsParams(id, a))
	require.Contains(t, old.try("_save", idParams(id)).Error.Message, "another window")
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(r.noted()), "close")
	}, patience, time.Millisecond,
		"it frees its roots, though it writes nothing more")
	require.Equal(t, "not_active", old.try("session/set_mode", idParams(id)).reason(t))
}

// Clause W9.
func TestNothingIsStoredAfterTheEnd(t *testing.T) {
	store := memstore.New(t)
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Store: store, Backend: using(r)}.
		With(acp.Tuning{Wire: jsonrpc.Options{Grace: time.Millisecond}}))
	a, b := folder(t), folder(t)
	id := c.open(a)
	before, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	c.post("session/load", rootsParams(id, a, b))
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(r.noted()), "open session/load")
	}, patience, time.Millisecond)
	c.leave()
	require.Equal(t, 1, strings.Count(fmt.Sprint(r.noted()), "close"))
	close(r.hold)
	require.Eventually(t, func() bool {
		return strings.Count(fmt.Sprint(r.noted()), "close") == 2
	}, patience, time.Millisecond,
		"what it opened is freed")
	after, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// Clause W6.
func TestUpdateAfterItsContext(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	id := c.open(folder(t))
	prompt, line := c.request("session/prompt", promptParams(id, "mute"))
	c.send(line, notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	if strings.Contains(fmt.Sprint(r.noted()), "prompt mute") { // it was not cancelled before
		require.Contains(t, r.noted(), "update after the end: "+backend.ErrCancelled.Error())
	}
	require.NotContains(t, encode(c.messages()), "after the end")
}

// What a response says of a session is its id, where that is new, and what the backend adds.
//
// Clause A21.
func TestResponses(t *testing.T) {
	c := start(t, acp.Options{})
	a, b := folder(t), folder(t)
	id := c.open(a, b)
	for method, want := range map[string][]string{
		"session/new": {"_meta", "sessionId"}, "session/fork": {"_meta", "sessionId"},
		"session/load": {"_meta"}, "session/resume": {"_meta"},
	} {
		var result map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(c.call(method, rootsParams(id, a, b)), &result))
		require.Equal(t, want, slices.Sorted(maps.Keys(result)), method)
	}
}

// What has the name of the roots, but stands where a lifecycle request does not have it, is not
// read.
//
// Clause A24.
func TestRootsAreFixed(t *testing.T) {
	c := start(t, acp.Options{})
	a, b := folder(t), folder(t)
	hidden := `{"additionalDirectories":["` + b + `"],"additionalRoots":["` + b + `"],"cwd":"` + b +
		`"}`
	with := func(params string) string {
		return altered(altered(params, "_meta", hidden), "roots", `["`+b+`"]`)
	}
	id := c.open(a)
	roots := func(id string) {
		t.Helper()
		require.Equal(t, []string{"[" + a + "]"}, c.texts(id, "roots"))
		require.Equal(t, a, c.find(id).Cwd)
		require.Equal(t, []string{}, c.find(id).AdditionalDirectories)
	}
	for _, method := range opening {
		var result struct{ SessionID string }
		require.NoError(t, json.Unmarshal(c.call(method, with(rootsParams(id, a))), &result))
		if result.SessionID == "" {
			result.SessionID = id
		}
		roots(result.SessionID)
	}
	prompt := altered(altered(with(promptParams(id, "roots")), "additionalDirectories",
		`["`+b+`"]`), "cwd", `"`+b+`"`)
	require.Equal(t, "end_turn", c.try("session/prompt", prompt).stopReason(t))
	c.call("session/set_mode", altered(with(idParams(id)), "additionalDirectories", `["`+b+`"]`))
	c.send(notification("session/cancel", with(idParams(id))),
		notification("_note", with(idParams(id))))
	c.texts(id, "state "+hidden)
	c.permit("allow-once")
	c.texts(id, `call session/request_permission {"options":[],"additionalDirectories":["`+b+`"]}`)
	roots(id)
}

// lifecycle returns the params of a method that opens a session, with a system prompt.
func lifecycle(id, dir, prompt string) string {
	member := ""
	if id != "" {
		member = fmt.Sprintf(`"sessionId":%q,`, id)
	}
	return fmt.Sprintf(`{%s"cwd":%q,"mcpServers":[],"systemPrompt":%s}`, member, dir, prompt)
}

// A system prompt that cannot be followed as a whole opens no session, and has no effect on one
// that exists.
//
// Clause A5.
func TestSystemPromptsAreChecked(t *testing.T) {
	r := &scripted{prompts: backend.SystemPromptsServed}
	c := start(t, acp.Options{Backend: using(r)})
	dir := folder(t)
	id := c.open(dir)
	before := r.noted()
	for method, session := range map[string]string{"session/new": "", "session/load": id,
		"session/resume": id, "session/fork": id} {
		m := c.try(method, lifecycle(session, dir, `{"mode":"prepend","Content":[]}`))
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
		require.Equal(t, []string{"systemPrompt.Content wrong_case"}, m.findings(t))
		m = c.try(method, lifecycle(session, dir, `{"mode":"prepend","content":[{"type":"text"}]}`))
		require.Equal(t, []string{"systemPrompt.mode unsupported", "systemPrompt.content[0].text required"},
			m.findings(t))
	}
	require.Equal(t, before, r.noted())
	require.Len(t, c.list(`{}`), 1)
}

// A system prompt that is served is advertised, and reaches the backend with each request that
// opens a session. One that only the backend can judge reaches it unchanged.
//
// Clause A1.
func TestSystemPromptsReachTheBackend(t *testing.T) {
	for rule, prompts := range map[backend.SystemPrompts][]string{
		backend.SystemPromptsServed: {"null",
			`{"mode":"override","content":[{"type":"text","text":"One."}],"_meta":{"a":1}}`},
		backend.SystemPromptsUnchecked: {`{"mode":"_ours","content":[{"type":"image"}],"more":[]}`},
	} {
		var got string
		r := &scripted{prompts: rule, opened: func(a backend.Activation, _ backend.Host) {
			got = string(strictjson.Find(a.Params, "systemPrompt"))
		}}
		c := connect(t, acp.Options{Backend: using(r)})
		advertised := strictjson.Find(c.initialize(), "agentCapabilities", "sessionCapabilities", "systemPrompt")
		require.Equal(t, rule == backend.SystemPromptsServed, string(advertised) == `{"mode":{"override":{}}}`)
		dir := folder(t)
		id := c.open(dir)
		for _, prompt := range prompts {
			for method, session := range map[string]string{"session/new": "", "session/load": id,
				"session/resume": id, "session/fork": id} {
				c.call(method, lifecycle(session, dir, prompt))
				require.Equal(t, strings.TrimPrefix(prompt, "null"), strings.TrimPrefix(got, "null"))
			}
		}
	}
}

// Without a model nothing can follow instructions, so they are refused, as ACP demands.
//
// Clause A5.
func TestSystemPromptsWithoutAModel(t *testing.T) {
	c := connect(t, acp.Options{Backend: explore.New})
	require.NotContains(t, string(c.initialize()), "systemPrompt")
	m := c.try("session/new", lifecycle("", folder(t),
		`{"mode":"append","content":[{"type":"text","text":"Be brief."}]}`))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Contains(t, m.Error.Message, "systemPrompt")
	require.Contains(t, m.Error.Message, "is not supported: there is no model that would follow it")
	require.Empty(t, c.list(`{}`))
	c.call("session/new", lifecycle("", folder(t), "null"))
}
