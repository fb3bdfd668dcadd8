package acp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause W5.
func TestCancelInSameWrite(t *testing.T) {
	c := start(t, acp.Options{})
	id := c.open(folder(t))
	for range volume.Of(200, 1000) {
		prompt, line := c.request("session/prompt", promptParams(id, "wait"))
		c.send(line, notification("session/cancel", idParams(id)))
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
}

// Clause W6.
func TestNothingFollowsCancelledResponse(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{CancelGrace: time.Millisecond}))
	id := c.open(folder(t))
	prompt := c.beginTurn(id, "stubborn", "stubborn")
	c.send(notification("session/cancel", `{"sessionId":"`+id+`","_meta":{"why":1}}`))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	close(r.release)
	require.Equal(t, []string{"next"}, c.texts(id, "say next"))
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(r.noted()), "late update: "+backend.ErrTurnOver.Error())
	}, patience, time.Millisecond)
	require.Contains(t, r.noted(), `cancel {"_meta":{"why":1}}`,
		"the backend is told once, with the client's words")
	require.NotContains(t, encode(c.messages()), "too late")
}

// Clause A32.
func TestDuringATurn(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	id := c.open(folder(t))
	prompt := c.post("session/prompt", promptParams(id, "wait"))
	require.Equal(t, "{}",
		string(c.call("session/set_mode", `{"sessionId":"`+id+`","modeId":"m"}`)))
	require.Contains(t, r.noted(), `call session/set_mode {"modeId":"m"}`,
		"the session id does not cross the seam")
	require.Equal(t, jsonrpc.CodeMethodNotFound, c.try("_unknown", idParams(id)).Error.Code)
	c.send(notification("_note", `{"sessionId":"`+id+`","a":1}`))
	closing, line := c.request("session/close", idParams(id))
	next, nextLine := c.request("session/prompt", promptParams(id, "say next"))
	c.send(line, nextLine)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(closing).Error)
	require.Equal(t, "not_active", c.response(next).reason(t),
		"a prompt behind a close waits for it")
	require.Contains(t, r.noted(), `session notify _note {"a":1}`)
}

// Clause W5.
func TestOrder(t *testing.T) {
	c := start(t, acp.Options{})
	a, b := folder(t), folder(t)
	id := c.open(a)
	var lines, ids, prompts []string
	for i := range 40 {
		roots := []string{b}
		if i%2 == 1 {
			roots = []string{}
		}
		n, line := c.request("session/resume", rootsParams(id, a, roots...))
		lines, ids = append(lines, line), append(ids, n)
		n, line = c.request("session/prompt", promptParams(id, "roots"))
		lines, ids, prompts = append(lines, line), append(ids, n), append(prompts, n)
	}
	c.send(lines...)
	for _, n := range ids {
		require.Nil(t, c.response(n).Error)
	}
	// The resume behind a turn may cancel it before it has said anything.
	before := 0
	for i, n := range prompts {
		_, answered := c.await(before, isResponse(n))
		said := texts(c.messages()[before:answered], id)
		require.LessOrEqual(t, len(said), 1)
		for _, answer := range said {
			require.Equal(t, i%2 == 0, strings.Contains(answer, b), "turn %d", i)
		}
		if len(said) == 0 {
			require.Equal(t, "cancelled", c.response(n).stopReason(t))
		}
		before = answered
	}
}

// Clause W9.
func TestEndOfInput(t *testing.T) {
	notOverRemote(t, turnsGoOn)
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store})
	a := folder(t)
	id := c.open(a)
	prompt := c.beginTurn(id, "wait", "waiting")
	open := c.post("session/new", rootsParams("", a))
	c.leave()
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Nil(t, c.response(open).Error)
	d := start(t, acp.Options{Store: store})
	require.Len(t, d.list(`{}`), 2)
}

// Clause W11.
func TestTurnBlocksForSlowClient(t *testing.T) {
	c := start(t, acp.Options{}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 1 << 10}}))
	id := c.open(folder(t))
	require.Len(t, c.texts(id, "count 5000"), 5000)
}

// Clause A22.
func TestSessionsAreApart(t *testing.T) {
	c := start(t, acp.Options{})
	a, b := folder(t), folder(t)
	one, two := c.open(a), c.open(b)
	require.Contains(t, c.texts(one, "roots")[0], a)
	require.NotContains(t, c.texts(one, "roots")[0], b)
	require.Contains(t, c.texts(two, "roots")[0], b)
	secret := filepath.Join(b, "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	c.permit("reject-once")
	require.Contains(t, c.texts(one, `call fs/read_text_file {"path":"`+secret+`"}`)[0], "outside")
}

// Clause A26.
func TestCallsToTheClient(t *testing.T) {
	a := folder(t)
	inside, outside := filepath.Join(a, "new.txt"), filepath.Join(folder(t), "x")
	require.NoError(t, os.Symlink(outside, filepath.Join(a, "dangling")))
	for name, tc := range map[string]struct {
		capabilities, method, params, refused string
	}{
		"outside": {`{"fs":{"readTextFile":true}}`, "fs/read_text_file",
			`{"path":"` + outside + `"}`, "outside"},
		"dangling": {`{"fs":{"writeTextFile":true}}`, "fs/write_text_file",
			`{"path":"` + a + `/dangling","content":""}`, "outside"},
		"relative": {`{"fs":{"readTextFile":true}}`, "fs/read_text_file",
			`{"path":"new.txt"}`, "absolute"},
		"up behind what is missing": {`{"fs":{"writeTextFile":true}}`, "fs/write_text_file",
			`{"path":"` + a + `/missing/../../x","content":""}`, "no such file"},
		"path twice": {`{"fs":{"readTextFile":true}}`, "fs/read_text_file",
			`{"path":"` + outside + `","path":"` + inside + `"}`, " once, in this spelling"},
		"PATH": {`{"fs":{"readTextFile":true}}`, "fs/read_text_file",
			`{"PATH":"` + outside + `"}`, " once, in this spelling"},
		"no path": {`{"fs":{"readTextFile":true}}`, "fs/read_text_file", `{}`,
			"no path"},
		"cwd outside": {`{"terminal":true}`, "terminal/create",
			`{"command":"x","cwd":"/"}`, "outside"},
		"recorded only": {`{}`, "session/update", `{"update":{}}`, "recorded"},
		"inside": {`{"fs":{"writeTextFile":true}}`, "fs/write_text_file",
			`{"path":"` + inside + `","content":"x"}`, ""},
		"no capability":   {`{}`, "session/request_permission", `{"options":[]}`, ""},
		"unknown methods": {`{}`, "_custom/method", `{"path":"/anything"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, acp.Options{})
			c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+tc.capabilities+`}`)
			id := c.open(a)
			c.post("session/prompt", promptParams(id, "call "+tc.method+" "+tc.params))
			if tc.refused == "" {
				m, _ := c.await(0, func(m message) bool { return m.Method == tc.method })
				require.Contains(t, string(m.Params), `"sessionId":"`+id+`"`)
				c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"ok":1}}`)
			}
			answer, _ := c.await(0, func(m message) bool {
				return m.Method == "session/update" &&
					strings.Contains(string(m.Params), "agent_message_chunk")
			})
			if tc.refused == "" {
				require.Contains(t, string(answer.Params), `{\"ok\":1} \u003cnil\u003e`)
				return
			}
			require.Contains(t, string(answer.Params), tc.refused)
			for _, m := range c.messages() {
				reached := m.Method == tc.method &&
					!strings.Contains(string(m.Params), "sessionUpdate")
				require.False(t, reached, "a refusal never reaches the client")
			}
		})
	}
}

// Clause P6.
func TestUnknownMethods(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	require.Equal(t, `{"b":1.0,"a":[1e5]}`, string(c.call("_echo", `{"b":1.0,"a":[1e5]}`)))
	require.Equal(t, jsonrpc.CodeMethodNotFound, c.try("_other", `{}`).Error.Code)
	c.send(notification("_hello", `{"x":1}`))
	c.call("_echo", `{}`)
	require.Contains(t, r.noted(), `notify _hello {"x":1}`)
}

// Clause W7.
func TestQueuedPrompt(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store, Backend: using(r)}.
		With(acp.Tuning{CancelGrace: patience}))
	id := c.open(folder(t))
	first, line := c.request("session/prompt", promptParams(id, "stubborn"))
	second, secondLine := c.request("session/prompt", promptParams(id, "say second"))
	c.send(line, secondLine)
	_, rejected := c.busy(id) // the one that waits there is the third and rejected, too
	require.Equal(t, "turn_in_progress", rejected.reason(t))
	record, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	require.LessOrEqual(t, record.Turns, int64(1), "S8: a turn begins when the backend acts")
	close(r.release)
	require.Equal(t, "end_turn", c.response(first).stopReason(t))
	require.Equal(t, "end_turn", c.response(second).stopReason(t))
	_, firstAt := c.await(0, isResponse(first))
	_, saidAt := c.await(0, said("second"))
	require.Less(t, firstAt, saidAt)
	record, err = store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	require.EqualValues(t, 2, record.Turns)
}

// A prompt is one too many also behind one that has not begun, and is told so while that waits.
//
// Clause W7.
func TestPromptAfterWaitingPrompt(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	load, loading := c.request("session/load", rootsParams(id, a))
	first, line := c.request("session/prompt", promptParams(id, "say first"))
	second, secondLine := c.request("session/prompt", promptParams(id, "say second"))
	third, thirdLine := c.request("session/prompt", promptParams(id, "say third"))
	c.send(loading, line, secondLine, thirdLine)
	m := c.response(third)
	require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code)
	require.Equal(t, "turn_in_progress", m.reason(t))
	for _, m := range c.messages() {
		require.False(t, isResponse(load)(m) || isResponse(first)(m))
	}
	close(r.hold)
	require.Nil(t, c.response(load).Error)
	require.Equal(t, "end_turn", c.response(first).stopReason(t))
	require.Equal(t, "end_turn", c.response(second).stopReason(t))
	require.Equal(t, []string{"first", "second"}, texts(c.messages(), id))
}

// However long a cancelled turn takes to end, the next one begins behind its response.
//
// Clause W7.
func TestPromptAfterCancel(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{CancelGrace: patience}))
	id := c.open(folder(t))
	first := c.beginTurn(id, "stubborn", "stubborn")
	next, line := c.request("session/prompt", promptParams(id, "say next"))
	c.send(notification("session/cancel", idParams(id)), line)
	for range 100 { // it is behind the cancel, and could have begun
		c.list(`{}`)
	}
	require.NotContains(t, r.noted(), "prompt say next")
	close(r.release)
	require.Equal(t, "cancelled", c.response(first).stopReason(t))
	require.Equal(t, "end_turn", c.response(next).stopReason(t))
	_, answered := c.await(0, isResponse(first))
	_, begun := c.await(0, said("next"))
	require.Less(t, answered, begun)
}

// A prompt may arrive at any time while the session is closed and opened again.
//
// Clause A32.
func TestPromptWhileClosing(t *testing.T) {
	c := start(t, acp.Options{Backend: using(&scripted{})})
	a := folder(t)
	id := c.open(a)
	for range 300 {
		_, closing := c.request("session/close", idParams(id))
		_, opening := c.request("session/resume", rootsParams(id, a))
		prompt, line := c.request("session/prompt", promptParams(id, "say next"))
		c.send(closing, opening, line)
		require.Equal(t, "end_turn", c.response(prompt).stopReason(t))
	}
}

// Once the client has left, no prompt begins that waited for another one.
//
// Clause A32.
func TestWaitingPromptOfAClientThatLeaves(t *testing.T) {
	for range 200 {
		c := start(t, acp.Options{Backend: using(&scripted{})})
		id := c.open(folder(t))
		first := c.beginTurn(id, "wait", "waiting")
		waiting := c.post("session/prompt", promptParams(id, "say next"))
		c.leave()
		require.Equal(t, "cancelled", c.response(first).stopReason(t))
		require.Equal(t, "cancelled", c.response(waiting).stopReason(t))
	}
}

// The backend has ended its turn, and the response is not written yet.
//
// Clause W5.
func TestCancelWhileEndIsStored(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	c := start(t, acp.Options{Store: store})
	id := c.open(folder(t))
	c.texts(id, "say one")
	store.ending = func() {
		c.send(notification("session/cancel", idParams(id)))
		c.call("_echo", `{}`) // the cancel was read
	}
	prompt := c.post("session/prompt", promptParams(id, "say two"))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Contains(t, texts(c.messages(), id), "two")
	require.Equal(t, []string{"three"}, c.texts(id, "say three"))
}

// The response waits behind one that the client does not read.
//
// Clause W5.
func TestCancelWhileResponseWaits(t *testing.T) {
	const limit = 4 << 10
	writing, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r, store := &scripted{}, &hooked{Store: memstore.New(t)}
	c := start(t, acp.Options{Store: store, Backend: r.serve}.With(
		acp.Tuning{Wire: jsonrpc.Options{MaxQueue: limit,
			Tap: func(sent bool, line []byte) {
				if sent && len(line) > limit {
					writing <- struct{}{}
					<-goOn
				}
			}}}))
	id := c.open(folder(t))
	c.texts(id, "say one")
	store.ending = func() { close(ended) }
	c.post("_echo", `["`+strings.Repeat("x", limit)+`"]`)
	<-writing // the queue is full
	prompt := c.post("session/prompt", promptParams(id, "nothing"))
	<-ended
	c.send(notification("session/cancel", idParams(id)), notification("_note", `{}`))
	require.Eventually(t, func() bool {
		return slices.Contains(r.noted(), "notify _note {}")
	}, patience, time.Millisecond)
	close(goOn)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Equal(t, []string{"two"}, c.texts(id, "say two"))
	require.NotContains(t, strings.Join(r.noted(), "\n"), "cancel {",
		"the backend was done with the turn")
}

// A backend that hangs in the first half of a prompt holds up no cancel and no other session.
//
// Clause W5.
func TestHangingPrompt(t *testing.T) {
	in, hold := make(chan struct{}, 1), make(chan struct{})
	hangs := func(_ context.Context, params backend.Raw, _ backend.Updates) backend.Work {
		if strings.Contains(string(params), `"stuck"`) {
			in <- struct{}{}
			<-hold
		}
		return nil
	}
	r := &scripted{prompted: hangs}
	c := start(t, acp.Options{Backend: using(r)}.
		With(acp.Tuning{CancelGrace: 10 * time.Millisecond}))
	a := folder(t)
	id, other := c.open(a), c.open(a)
	prompt := c.post("session/prompt", promptParams(id, "stuck"))
	<-in
	call, line := c.request("session/set_mode", idParams(id))
	c.send(line, notification("session/cancel", idParams(id)))
	require.Equal(t, []string{"x"}, c.texts(other, "say x"), "the cancel holds up nobody")
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t), "the turn ends with its grace")
	require.NotContains(t, r.noted(), "cancel {}", "it is told once it has the prompt")
	close(hold)
	require.Nil(t, c.response(call).Error)
	require.Equal(t, []string{"y"}, c.texts(id, "say y"))
	told := strings.Join(r.noted(), "\n")
	require.Contains(t, told, "prompt stuck\ncancel {}\n",
		"of its end, behind the prompt and before anything else")
	require.Equal(t, 1, strings.Count(told, "cancel"))
}

// A turn whose backend does not end is answered before the program ends, even if the cancel grace
// is longer.
//
// Clause W9.
func TestHangingTurn(t *testing.T) {
	notOverRemote(t, turnsGoOn)
	r := &scripted{release: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{CancelGrace: patience}))
	id := c.open(folder(t))
	prompt := c.beginTurn(id, "stubborn", "stubborn")
	c.leave()
	close(r.release)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
}

// What is shown of a turn was stored before: the prompt, and what is committed.
//
// Clauses S8, S11.
func TestCommitStoresBeforeItShows(t *testing.T) {
	store := memstore.New(t)
	late := sessionstore.RecorderOptions{Interval: time.Hour}
	c := start(t, acp.Options{Store: store}.With(acp.Tuning{Recorder: late}))
	id := c.open(folder(t))
	prompt := c.beginTurn(id, "commit changed", "changed")
	require.Equal(t, []string{"commit changed", "changed"}, storedTexts(t, store, id))
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
}

// A turn that never stops talking is stopped, says why, and the session goes on.
func TestTurnThatSaysTooMuch(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store}.With(acp.Tuning{TurnBytes: 1 << 20}))
	id := c.open(folder(t))
	prompt := c.post("session/prompt", promptParams(id, "flood"))
	require.Equal(t, "max_turn_requests", c.response(prompt).stopReason(t))
	const why = "Stopped, because this turn has reached the limit of 1 MiB"
	require.Contains(t, strings.Join(texts(c.messages(), id), ""), why)
	require.Equal(t, 1, strings.Count(strings.Join(recorded(t, store, id), ""), why))
	stored := 0
	for _, u := range updatesOf(t, store, id) {
		stored += len(u.Raw)
	}
	require.Less(t, stored, 3<<20)
	require.Equal(t, []string{"next"}, c.texts(id, "say next"))
}

// How a turn ended is in the history, for those who read it later, and not in what clients are
// shown.
//
// Clause S12.
func TestEndOfTurnIsStored(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store})
	dir := folder(t)
	id := c.open(dir)
	require.NotNil(t, c.try("session/prompt", promptParams(id, "fail")).Error)
	c.call("session/prompt", promptParams(id, "say one"))
	var ends []string
	for _, u := range updatesOf(t, store, id) {
		if u.Kind == sessionstore.TurnEndUpdate {
			ends = append(ends, u.String())
		}
	}
	require.Len(t, ends, 2)
	require.Contains(t, ends[0], `"error":"`)
	require.Equal(t, sessionstore.TurnEnded("end_turn", "").String(), ends[1])
	c.call("session/close", idParams(id))
	c.call("session/load", rootsParams(id, dir))
	for _, m := range c.messages() {
		require.NotContains(t, fmt.Sprint(m), string(sessionstore.TurnEndUpdate))
	}
}

// storedTexts returns the texts of the messages in a stored history.
func storedTexts(t *testing.T, store sessionstore.Store, id string) []string {
	t.Helper()
	return historyTexts(t, backend.Activation{
		History: sessionstore.WithoutEnds(store.History(t.Context(), sessionstore.ID(id)))})
}

// Nothing is stored of a prompt that the backend refused as invalid, unless it said something
// first.
//
// Clause S12.
func TestRefusedPromptIsNotStored(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store})
	dir := folder(t)
	id := c.open(dir)
	refuse := func(prompt string) {
		t.Helper()
		m := c.try("session/prompt", promptParams(id, prompt))
		require.NotNil(t, m.Error)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	}
	stored := func() (string, int64) {
		s, err := store.Get(t.Context(), sessionstore.ID(id))
		require.NoError(t, err)
		return s.Title, s.Turns
	}
	found := func(text string) int {
		found, err := store.Search(t.Context(), sessionstore.SearchQuery{Text: text})
		require.NoError(t, err)
		return len(found)
	}
	titles := func() (all []string) {
		for _, m := range c.messages() {
			if _, title, ok := strings.Cut(string(m.Params), `"session_info_update","title":`); ok {
				all = append(all, strings.TrimRight(title, "}"))
			}
		}
		return all
	}
	refuse("refuse")
	title, turns := stored()
	require.Empty(t, title)
	require.Zero(t, turns)
	require.Equal(t, []string{`"refuse"`, "null"}, titles())
	require.Empty(t, storedTexts(t, store, id))

	c.call("session/prompt", promptParams(id, "say one"))
	refuse("refuse")
	refuse("refuse")
	title, turns = stored()
	require.Equal(t, "say one", title)
	require.EqualValues(t, 1, turns)
	require.Equal(t, []string{`"refuse"`, "null", `"say one"`}, titles())
	require.Equal(t, []string{"say one", "one"}, storedTexts(t, store, id))
	require.Zero(t, found("refuse"))

	refuse("refuse two")
	require.Equal(t, []string{"say one", "one", "refuse two", "two"}, storedTexts(t, store, id))
	c.call("session/prompt", promptParams(id, "say three"))
	c.call("session/close", idParams(id))
	before := len(c.messages())
	c.call("session/load", rootsParams(id, dir))
	require.Equal(t, []string{"one", "two", "three"}, texts(c.messages()[before:], id))
}

// Two prompts of an agent that takes the second one during the first. Both are stored.
//
// Clause S12.
func TestRefusedPromptDuringATurn(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store, Backend: using(&scripted{overlaps: true})})
	id := c.open(folder(t))
	first := c.beginTurn(id, "wait", "waiting")
	require.NotNil(t, c.try("session/prompt", promptParams(id, "refuse")).Error)
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(first).stopReason(t))
	require.Contains(t, storedTexts(t, store, id), "refuse")
}

// A cancel does not stand in the line of its session: it reaches the prompts that stand there.
//
// Clause A32.
func TestCancelDoesNotQueue(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	load, loading := c.request("session/load", rootsParams(id, a))
	prompt, line := c.request("session/prompt", promptParams(id, "say waited"))
	c.send(loading, line, notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t), "while the load is at work")
	next := c.post("session/prompt", promptParams(id, "say next"))
	for _, m := range c.messages() {
		require.False(t, isResponse(load)(m))
	}
	close(r.hold)
	require.Nil(t, c.response(load).Error, "which it leaves alone")
	require.Equal(t, "end_turn", c.response(next).stopReason(t))
	require.Equal(t, []string{"next"}, texts(c.messages(), id))
}

// A prompt behind a load that fails, and so ends no turn, is rejected like one that arrives later.
//
// Clause A32.
func TestPromptBehindAFailedLoad(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	running := c.post("session/prompt", promptParams(id, "wait"))
	queued, rejected := c.busy(id)
	require.NotNil(t, rejected.Error)

	load, line := c.request("session/load", rootsParams(id, a))
	behind, prompt := c.request("session/prompt", promptParams(id, "say behind"))
	c.send(line, prompt)
	c.list(`{}`) // the prompt has been read
	r.refuse = errors.New("not today")
	close(r.hold)
	require.NotNil(t, c.response(load).Error)
	require.Equal(t, rejected.Error.Code, c.response(behind).Error.Code)
	c.send(notification("session/cancel", idParams(id)))
	for _, prompt := range []string{running, queued} {
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
}

// Two clients take a session from each other while both prompt in it. Whoever is told that a turn
// has ended well finds it in the history.
//
// Clauses S1, S3, S8.
func TestCompletedTurnsAreStored(t *testing.T) {
	var database pgtest.Server
	t.Cleanup(database.Stop)
	closed := func(t *testing.T, s interface {
		sessionstore.Store
		Close() error
	}) sessionstore.Store {
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	for name, stores := range map[string]func(t *testing.T) (one, other sessionstore.Store){
		"one server": func(t *testing.T) (one, other sessionstore.Store) {
			s := closed(t, sqlite.New(sqlite.Options{Dir: t.TempDir()}))
			return s, s
		},
		"two with SQLite": func(t *testing.T) (one, other sessionstore.Store) {
			dir := t.TempDir()
			return closed(t, sqlite.New(sqlite.Options{Dir: dir})),
				closed(t, sqlite.New(sqlite.Options{Dir: dir}))
		},
		"two with PostgreSQL": func(t *testing.T) (one, other sessionstore.Store) {
			address := database.Address(t)
			open := func() sessionstore.Store {
				s, err := postgres.New(postgres.Options{Address: address})
				require.NoError(t, err)
				return closed(t, s)
			}
			return open(), open()
		},
	} {
		t.Run("S8/"+name, func(t *testing.T) {
			one, other := stores(t)
			raceTurns(t, one, connect(t, acp.Options{Store: one}), connect(t, acp.Options{Store: other}))
		})
	}
}

// raceTurns lets clients load and prompt one session at once, and compares what they were answered
// with the history in store.
func raceTurns(t *testing.T, store sessionstore.Store, clients ...*client) {
	dir := folder(t)
	for _, c := range clients {
		c.initialize()
	}
	id := clients[0].open(dir)
	var mu sync.Mutex
	completed := 0
	for round := range volume.Of(10, 100) {
		var both sync.WaitGroup
		for i, c := range clients {
			both.Go(func() {
				_, load := c.request("session/load", rootsParams(id, dir))
				said := fmt.Sprintf("words %d of %d", round, i)
				prompt, line := c.request("session/prompt", promptParams(id, "say "+said))
				c.send(load, line)
				m := c.response(prompt)
				if m.Error != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				completed++
				if strings.Count(strings.Join(recorded(t, store, id), "\n"), said) != 1 {
					t.Errorf("answered with %s, and not stored: %s", m.Result, said)
				}
			})
		}
		both.Wait()
	}
	require.NotZero(t, completed)
}
