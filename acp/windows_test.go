package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// windows is a session that several clients of one user have open.
type windows struct {
	t       *testing.T
	dir, id string
	backend *scripted
	connect func() *client
}

// openWindows opens a session in the first of several clients.
func openWindows(t *testing.T, o acp.Options) (w *windows, first *client) {
	t.Helper()
	w = &windows{t: t, dir: folder(t), backend: &scripted{release: make(chan struct{})}}
	o.Backend = using(w.backend)
	_, w.connect = lasting(t, w.dir, acp.ServerOptions{}, o)
	first = w.connect()
	w.id = first.open(w.dir)
	return w, first
}

// join opens the session in another client.
func (w *windows) join() *client {
	w.t.Helper()
	c := w.connect()
	c.call("session/load", rootsParams(w.id, w.dir))
	return c
}

// prompt sends a prompt and returns the id of the request.
func (w *windows) prompt(c *client, text string) (request string) {
	w.t.Helper()
	request = c.post("session/prompt", promptParams(w.id, text))
	return request
}

const askPermission = `call session/request_permission ` +
	`{"toolCall":{"toolCallId":"t1","title":"T"},` +
	`"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},` +
	`{"optionId":"no","name":"No","kind":"reject_once"}]}`

const (
	yes       = `{"outcome":{"outcome":"selected","optionId":"yes"}}`
	cancelled = `{"outcome":{"outcome":"cancelled"}}`
)

func isQuestion(m message) bool { return m.Method == "session/request_permission" }

// question waits for the permission request.
func question(c *client) message {
	c.t.Helper()
	m, _ := c.await(0, isQuestion)
	return m
}

// reply sends the result of a request.
func (c *client) reply(to message, result string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":` + string(to.ID) + `,"result":` + result + `}`)
}

// cancels reports whether the client is told that a request was cancelled.
func cancels(question message) func(message) bool {
	return func(m message) bool {
		return m.Method == "$/cancel_request" &&
			strings.Contains(string(m.Params), `"requestId":`+string(question.ID))
	}
}

// users returns what users said, as the client was shown it.
func users(c *client) (all []string) {
	for _, m := range c.messages() {
		var p struct {
			Update struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Update.SessionUpdate == "user_message_chunk" {
			all = append(all, p.Update.Content.Text)
		}
	}
	return all
}

// says waits until the client is shown that the agent says a text.
func says(c *client, text string) {
	c.t.Helper()
	c.await(0, func(m message) bool { return strings.Contains(string(m.Params), text) })
}

// What two windows of a user see of each other. Each case is a defect that another program had.
//
// Clause N7.
func TestWindows(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, w *windows, a *client){
		"both see a turn and either may prompt": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			require.Equal(t, []string{"one"}, a.texts(w.id, "say one"))
			says(b, `"one"`)
			require.Equal(t, []string{"two"}, b.texts(w.id, "say two"))
			says(a, `"two"`)
			require.Equal(t, []string{"say one"}, users(b), "the own prompt is not shown")
			require.Equal(t, []string{"say two"}, users(a))
		},
		"a message sent during a turn is shown once, when its turn comes": func(
			t *testing.T, w *windows, a *client,
		) {
			b := w.join()
			turn := w.prompt(a, "stubborn")
			says(b, "stubborn")
			queued := w.prompt(b, "say queued")
			b.call("session/list", "{}") // it has been accepted
			require.Equal(t, "turn_in_progress",
				a.try("session/prompt", promptParams(w.id, "say x")).reason(t))
			close(w.backend.release)
			require.Equal(t, "end_turn", a.response(turn).stopReason(t))
			require.Equal(t, "end_turn", b.response(queued).stopReason(t))
			says(a, `"queued"`)
			require.Equal(t, []string{"say queued"}, users(a))
			require.Equal(t, []string{"stubborn", "say queued"}, users(w.join()))
		},
		"the end of a turn is told": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			turn := w.prompt(a, "say x")
			says(b, `"turn":{"running":true}`)
			end, _ := b.await(0, ended(w.id))
			for !strings.Contains(string(end.Params), "stopReason") {
				_, at := b.await(0, ended(w.id))
				end, _ = b.await(at+1, ended(w.id))
			}
			require.Contains(t, string(end.Params), `"stopReason":"end_turn"`)
			a.response(turn)
			require.NotContains(t, encode(a.messages()), `"turn":`)
		},
		"stop in one window releases the queue of the other": func(
			t *testing.T, w *windows, a *client,
		) {
			b := w.join()
			turn := w.prompt(a, "wait")
			says(b, "waiting")
			queued := w.prompt(b, "say queued")
			b.send(notification("session/cancel", idParams(w.id)))
			require.Equal(t, "cancelled", a.response(turn).stopReason(t))
			require.Equal(t, "cancelled", b.response(queued).stopReason(t))
			require.Equal(t, []string{"more"}, a.texts(w.id, "say more"))
		},
		"an open question is shown to a window that comes later": func(
			t *testing.T, w *windows, a *client,
		) {
			turn := w.prompt(a, askPermission)
			asked := question(a)
			b := w.join()
			b.reply(question(b), yes)
			a.await(0, cancels(asked))
			says(a, `"outcome":"selected"`)
			require.Equal(t, "end_turn", a.response(turn).stopReason(t))
			require.Len(t, w.join().questions(), 0, "an answered question is not asked again")
		},
		"the first answer wins and a late one is said": func(
			t *testing.T, w *windows, a *client,
		) {
			b := w.join()
			turn := w.prompt(a, askPermission)
			forA, forB := question(a), question(b)
			a.reply(forA, yes)
			a.response(turn)
			b.await(0, cancels(forB))
			b.reply(forB, `{"outcome":{"outcome":"selected","optionId":"no"}}`)
			says(b, "too late")
			says(b, `selected\",\"optionId\":\"yes\"`)
			require.NotContains(t, encode(a.messages()), "too late")
			a.reply(forA, yes) // again
			require.Equal(t, []string{"more"}, a.texts(w.id, "say more"))
		},
		"a window that has left stops nothing": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			b.call("session/close", idParams(w.id))
			turn := w.prompt(a, askPermission)
			asked := question(a)
			b.send(notification("session/cancel", idParams(w.id)))
			b.call("session/list", "{}") // it has been accepted
			a.reply(asked, yes)
			require.Equal(t, "end_turn", a.response(turn).stopReason(t))
		},
		"a mode is shown in the other window": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			a.call("session/set_mode", `{"sessionId":"`+w.id+`","modeId":"ask"}`)
			says(b, `"currentModeId":"ask"`)
			says(w.join(), `"currentModeId":"ask"`)
			require.NotContains(t, encode(a.messages()), "currentModeId")
		},
		"a session is open for who has not loaded it": func(t *testing.T, w *windows, a *client) {
			b := w.connect()
			status := b.call("session/status", idParams(w.id))
			require.JSONEq(t, `{"status":"open"}`, string(status))
			b.call("session/set_title", `{"sessionId":"`+w.id+`","title":"From outside"}`)
			says(a, `"title":"From outside"`)
			require.Equal(t, "not_active",
				b.try("session/prompt", promptParams(w.id, "say x")).reason(t))
			a.call("session/close", idParams(w.id))
			status = b.call("session/status", idParams(w.id))
			require.JSONEq(t, `{"status":"saved"}`, string(status))
		},
		"closing detaches": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			turn := w.prompt(b, "wait")
			says(a, "waiting")
			a.call("session/close", idParams(w.id))
			require.Equal(t, "not_active",
				a.try("session/prompt", promptParams(w.id, "say x")).reason(t))
			require.NotContains(t, w.backend.noted(), "close")
			b.send(notification("session/cancel", idParams(w.id)))
			require.Equal(t, "cancelled", b.response(turn).stopReason(t))
			require.NotContains(t, texts(a.messages(), w.id), "last words")
			a.call("session/load", rootsParams(w.id, w.dir))
			require.Equal(t, []string{"back"}, a.texts(w.id, "say back"))
			b.call("session/close", idParams(w.id))
			a.call("session/close", idParams(w.id))
			require.Contains(t, w.backend.noted(), "close")
		},
		"deleting needs that it is closed elsewhere": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			for _, method := range []string{"session/delete", "session/archive"} {
				require.Equal(t, "open_elsewhere", a.try(method, idParams(w.id)).reason(t))
				stranger := w.connect()
				require.Equal(t, "open_elsewhere", stranger.try(method, idParams(w.id)).reason(t))
			}
			b.leave()
			a.call("session/delete", idParams(w.id))
		},
		"a failed load takes the session from nobody": func(
			t *testing.T, w *windows, a *client,
		) {
			gone := filepath.Join(w.dir, "gone")
			b := w.connect()
			for _, params := range []string{
				rootsParams(w.id, w.dir, gone), rootsParams(w.id, gone), rootsParams(w.id, t.TempDir()),
			} {
				require.NotNil(t, b.try("session/load", params).Error, params)
			}
			turn := w.prompt(a, "wait")
			a.await(0, said("waiting"))
			require.NotNil(t, b.try("session/load", rootsParams(w.id, w.dir, gone)).Error)
			require.NotNil(t, b.try("session/prompt", promptParams(w.id, "say x")).Error)
			a.send(notification("session/cancel", idParams(w.id)))
			require.Equal(t, "cancelled", a.response(turn).stopReason(t))
			require.Equal(t, []string{"still"}, a.texts(w.id, "say still"))
		},
		"other roots wait for the end of a turn": func(t *testing.T, w *windows, a *client) {
			more := filepath.Join(w.dir, "more")
			require.NoError(t, os.Mkdir(more, 0o700))
			turn := w.prompt(a, "wait")
			a.await(0, said("waiting"))
			b := w.connect()
			refused := b.try("session/load", rootsParams(w.id, w.dir, more))
			require.Equal(t, "open_elsewhere", refused.reason(t))
			require.Contains(t, string(refused.Error.Data), `"roots":[`+encode(w.dir)+`]`)
			a.send(notification("session/cancel", idParams(w.id)))
			a.response(turn)
			b.call("session/load", rootsParams(w.id, w.dir, more))
			says(a, "Another window opened this session with other folders")
			require.Contains(t, a.texts(w.id, "roots")[0], more)
			says(b, more)
			require.Contains(t, texts(b.messages(), w.id), "waitinglast words")
		},
		"a lost window takes no turn along": func(t *testing.T, w *windows, a *client) {
			b := w.join()
			w.prompt(a, "stubborn")
			says(b, "stubborn")
			a.leave()
			require.Equal(t, []string{"more"}, func() []string {
				queued := w.prompt(b, "say more")
				close(w.backend.release)
				require.Equal(t, "end_turn", b.response(queued).stopReason(t))
				return texts(b.messages(), w.id)[2:]
			}())
		},
	} {
		t.Run("N7/"+name, func(t *testing.T) {
			w, a := openWindows(t, acp.Options{})
			test(t, w, a)
		})
	}
}

// A window goes on showing a prompt that the agent refused, until it loads the session again.
//
// Clauses N7, S12.
func TestWindowsOfRefusedPrompt(t *testing.T) {
	store := memstore.New(t)
	w, first := openWindows(t, acp.Options{Store: store})
	other := w.join()
	m := first.response(w.prompt(first, "refuse"))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	other.await(0, func(m message) bool {
		return strings.Contains(string(m.Params), `"turn":{"error":`)
	})
	require.Equal(t, []string{"refuse"}, users(other), "what was shown stays")
	require.Empty(t, users(w.join()))
	before := len(other.messages())
	other.call("session/load", rootsParams(w.id, w.dir))
	for _, m := range other.messages()[before:] {
		require.NotContains(t, string(m.Params), "refuse")
	}
	require.Equal(t, "end_turn", other.response(w.prompt(other, "say next")).stopReason(t))
	says(first, "next")
	require.Equal(t, []string{"say next", "next"}, storedTexts(t, store, w.id))
}

// What goes wrong in the store while its client is away does not tell the other windows where that
// is.
//
// Clause N7.
func TestWindowsAreNotToldTheStorePath(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	w, a := openWindows(t, acp.Options{Store: store})
	b := w.join()
	w.prompt(a, "stubborn")
	says(b, "stubborn")
	a.leave()
	store.mu.Lock()
	store.appending = &sessionstore.UnavailableError{Medium: "/state/sessions.db",
		Err: errors.New("disk full")}
	store.mu.Unlock()
	close(w.backend.release)
	says(b, `"turn":{"error":`)
	for _, m := range b.messages() {
		require.NotContains(t, string(m.Params), "sessions.db")
	}
}

// A window that comes later is asked with what the others were shown of the tool call, as it is
// now. The one whose turn it is gets what the agent sent.
//
// Clause N7.
func TestQuestionSaysWhatIsKnown(t *testing.T) {
	var host backend.Host
	b := &scripted{opened: func(_ backend.Activation, h backend.Host) { host = h }}
	dir := folder(t)
	_, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{Backend: using(b)})
	w, a := &windows{t: t, dir: dir, backend: b, connect: connect}, connect()
	w.id = a.open(dir)
	show := func(said string) {
		require.NoError(t, host.Update(t.Context(), update(`{"update":{"toolCallId":"t1",`+said+`}}`)))
	}
	show(`"sessionUpdate":"tool_call","title":"Edit a.md","kind":"edit","status":"pending",` +
		`"locations":[{"path":"/a.md","line":3}],"rawInput":{}`)
	show(`"sessionUpdate":"tool_call_update","rawInput":{"file":"a.md"},"title":null,` +
		`"content":[{"type":"diff","path":"/a.md","oldText":"a","newText":"b","_meta":{"x":1}}]`)
	w.prompt(a, strings.Replace(askPermission, `"title":"T"`, `"title":"Edit","kind":null`, 1))
	call := func(c *client) string {
		var asked struct{ ToolCall json.RawMessage }
		require.NoError(t, json.Unmarshal(question(c).Params, &asked))
		return string(asked.ToolCall)
	}
	require.JSONEq(t, `{"toolCallId":"t1","title":"Edit","kind":null}`, call(a))
	known := `{"toolCallId":"t1","title":"Edit","kind":"edit","status":"pending",` +
		`"locations":[{"path":"/a.md","line":3}],"rawInput":{"file":"a.md"},` +
		`"content":[{"type":"diff","path":"/a.md","oldText":"a","newText":"b","_meta":{"x":1}}]}`
	require.JSONEq(t, known, call(w.join()), "an editor loads")
	resumed := w.connect()
	resumed.call("session/resume", rootsParams(w.id, dir))
	require.JSONEq(t, known, call(resumed))

	show(`"sessionUpdate":"tool_call_update","rawInput":{"file":"b.md"}`)
	require.JSONEq(t, strings.Replace(known, `{"file":"a.md"}`, `{"file":"b.md"}`, 1), call(w.join()))
	show(`"sessionUpdate":"tool_call_update","rawInput":{"file":"` + strings.Repeat("x", 300<<10) + `"}`)
	require.JSONEq(t, `{"toolCallId":"t1","title":"Edit","kind":"edit","status":"pending",`+
		`"locations":[{"path":"/a.md","line":3}],"rawInput":"too long to be shown again"}`, call(w.join()))

	a.leave() // nobody is left who was there when it was asked
	last := w.join()
	require.Contains(t, call(last), `"locations":[`)
	last.reply(question(last), yes)
	last.await(0, ended(w.id))
}

// What is asked of an editor's machine goes to one window.
//
// Clause N7.
func TestWindowsShareNoFileRequests(t *testing.T) {
	w, a := openWindows(t, acp.Options{})
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "f"), nil, 0o600))
	b := w.join()
	content := func(m message) string {
		if m.Method == "fs/read_text_file" {
			return `{"content":"x"}`
		}
		return ""
	}
	a.answer(content)
	b.answer(content)
	read := `call fs/read_text_file {"path":` + encode(filepath.Join(w.dir, "f")) + `}`
	count := func(c *client) (n int) {
		for _, m := range c.messages() {
			if m.Method == "fs/read_text_file" {
				n++
			}
		}
		return n
	}
	require.Contains(t, b.texts(w.id, read)[0], "content")
	require.Equal(t, []int{1, 0}, []int{count(a), count(b)})
	a.leave()
	require.Contains(t, b.texts(w.id, read)[0], "content")
	require.Equal(t, 1, count(b))
}

// A window that reads nothing is not waited for. It is told so, and can load the session again.
//
// Clause N7.
func TestSlowWindow(t *testing.T) {
	w, a := openWindows(t, acp.Options{})
	b := w.join()
	goOn := b.stall()
	require.Equal(t, "end_turn", a.response(w.prompt(a, "count 60000")).stopReason(t))
	require.Equal(t, []string{"after"}, a.texts(w.id, "say after"))
	goOn()
	says(b, "took too long to read")
	require.Equal(t, "not_active", b.try("session/prompt", promptParams(w.id, "say x")).reason(t))
	b.call("session/load", rootsParams(w.id, w.dir))
	require.Equal(t, []string{"again"}, b.texts(w.id, "say again"))
	says(a, `"again"`)
	all := strings.Join(texts(w.join().messages(), w.id), "")
	require.True(t, strings.HasSuffix(all, "59999afteragain"), "nothing is missing")
}

// A window that loads a long session and reads nothing holds up no prompt of another, and is shown
// everything once it reads.
//
// Clause N7.
func TestJoinThatDoesNotRead(t *testing.T) {
	w, a := openWindows(t, acp.Options{})
	a.texts(w.id, "count 3000")
	b := w.connect()
	goOn := b.stall()
	load := b.post("session/load", rootsParams(w.id, w.dir))
	for i := range 3 {
		require.Equal(t, []string{"next"}, a.texts(w.id, "say next"), i)
	}
	turn := w.prompt(a, "count 20000")
	require.Equal(t, "end_turn", a.response(turn).stopReason(t))
	goOn()
	require.Nil(t, b.response(load).Error)
	require.Equal(t, []string{"last"}, a.texts(w.id, "say last"))
	b.await(0, said("last"))
	all := strings.Join(texts(w.join().messages(), w.id), "")
	require.Equal(t, all, strings.Join(texts(b.messages(), w.id), ""))
	require.Contains(t, all, "2999nextnextnext01234")
}

// The machine of the only window sleeps. Its turn goes on.
//
// Clause N7.
func TestSleepingWindow(t *testing.T) {
	dir := folder(t)
	next := make(chan struct{})
	_, connect := lasting(t, dir, acp.ServerOptions{},
		acp.Options{Backend: using(stepper(next))}.With(acp.Tuning{SlowViewer: time.Millisecond}))
	a := connect()
	id := a.open(dir)
	goOn := a.stall()
	turn := a.post("session/prompt", promptParams(id, "steps"))
	for range 1_000 {
		next <- struct{}{}
	}
	close(next)
	goOn()
	says(a, "took too long to read")
	require.Equal(t, "end_turn", a.response(turn).stopReason(t))
	b := connect()
	b.call("session/load", rootsParams(id, dir))
	require.True(t, strings.HasSuffix(strings.Join(texts(b.messages(), id), ""), "998,999,"))
}

// A window that is not read holds up its session, until another one opens that, even if a prompt
// whose turn begins holds the queue.
//
// Clause N7.
func TestJoinBesideAStalledWindow(t *testing.T) {
	for _, prompts := range [][]string{{"count 2000"}, {"count 400", "count 2000"}} {
		dir := folder(t)
		_, connect := lasting(t, dir, acp.ServerOptions{},
			acp.Options{}.With(acp.Tuning{SlowViewer: time.Hour}))
		a := connect()
		id := a.open(dir)
		other := connect()
		other.call("session/load", rootsParams(id, dir))
		goOn, otherGoesOn := a.stall(), other.stall()
		var turns []string
		for _, prompt := range prompts {
			turn, line := a.request("session/prompt", promptParams(id, prompt))
			turns = append(turns, turn)
			a.send(line)
		}
		b := connect()
		b.call("session/load", rootsParams(id, dir))
		goOn()
		otherGoesOn()
		for _, turn := range turns {
			require.Equal(t, "end_turn", a.response(turn).stopReason(t))
		}
		says(other, `"1999"`)
		require.Len(t, texts(other.messages(), id), len(texts(a.messages(), id)))
	}
}

// So it is if the prompt comes while the window that opens the session is shown its history.
//
// Clause N7.
func TestPromptDuringAJoinBesideStalledWindows(t *testing.T) {
	listed := make(chan struct{}, 1)
	w, a := openWindows(t, acp.Options{Observe: func(e acp.Event) {
		if e, ok := e.(acp.RequestEvent); ok && e.Method == "session/list" {
			listed <- struct{}{}
		}
	}}.With(acp.Tuning{SlowViewer: time.Hour, Wire: jsonrpc.Options{MaxQueue: 64 << 10}}))
	other := w.join()
	for range 40 { // more than a window that does not read has room for
		a.texts(w.id, "say before")
	}
	other.call("session/list", "{}")
	<-listed
	b := w.connect()
	bGoesOn := b.stall()
	load := b.post("session/load", rootsParams(w.id, w.dir))
	a.texts(w.id, "say next")
	aGoesOn, otherGoesOn := a.stall(), other.stall()
	for _, c := range []*client{a, other} {
		for range 10 { // whose responses leave no room in what it does not read
			c.post("session/list", "{}")
			<-listed
		}
	}
	turn := w.prompt(a, "say x")
	a.send(`{"jsonrpc":"2.0","id":"behind","method":"session/list","params":{}}`)
	<-listed // and the prompt has its place
	bGoesOn()
	require.Nil(t, b.response(load).Error)
	aGoesOn()
	otherGoesOn()
	require.Equal(t, "end_turn", a.response(turn).stopReason(t))
}

// An editor over a pipe is the only one that can have its session open, and is never too slow for
// it.
//
// Clause N7.
func TestEditorIsNeverTooSlow(t *testing.T) {
	store := memstore.New(t)
	o := acp.Options{Store: store, Backend: using(&scripted{})}.With(acp.Tuning{SlowViewer: 1})
	a := connectBy(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return acp.Serve(ctx, in, out, o)
	})
	a.initialize()
	id := a.open(folder(t))
	goOn := a.stall()
	turn := a.post("session/prompt", promptParams(id, "count 3000"))
	require.Eventually(t, func() bool { return len(recorded(t, store, id)) > 0 }, patience,
		time.Millisecond)
	goOn()
	require.Equal(t, "end_turn", a.response(turn).stopReason(t))
	require.Len(t, texts(a.messages(), id), 3000)
}

// A window that has closed a session is not shown it any more.
//
// Clause N7.
func TestNothingIsShownAfterClose(t *testing.T) {
	w, a := openWindows(t, acp.Options{})
	for range 20 {
		b := w.join()
		turn := w.prompt(a, "count 500")
		says(b, `"count 500"`)
		closing := b.post("session/close", idParams(w.id))
		a.response(turn)
		_, closed := b.await(0, isResponse(closing))
		b.call("session/list", "{}")
		require.Empty(t, texts(b.messages()[closed:], w.id))
	}
}

// Windows that load a session at the same time share it, whichever comes first.
//
// Clauses N7, S3.
func TestWindowsLoadTogether(t *testing.T) {
	for range 10 {
		w, first := openWindows(t, acp.Options{})
		first.texts(w.id, "say before")
		first.call("session/close", idParams(w.id))
		var clients []*client
		var loads []string
		for range 3 {
			clients = append(clients, w.connect())
		}
		for _, c := range clients {
			load, line := c.request("session/load", rootsParams(w.id, w.dir))
			loads = append(loads, load)
			c.send(line)
		}
		for i, c := range clients {
			require.Nil(t, c.response(loads[i]).Error)
		}
		for i, c := range clients {
			require.Equal(t, "end_turn", c.response(
				w.prompt(c, fmt.Sprintf("say from%d", i))).stopReason(t))
		}
		for _, c := range clients {
			const all = "beforefrom0from1from2"
			got := ""
			require.Eventually(t, func() bool { // others are shown the prompt first
				got = strings.Join(texts(c.messages(), w.id), "")
				return len(got) >= len(all)
			}, patience, time.Millisecond)
			require.Equal(t, all, got)
		}
	}
}

// A turn ends in the store and in other windows although the program panics in between.
//
// Clauses N7, W8.
func TestTurnEndsAfterPanic(t *testing.T) {
	var asked atomic.Int64
	for what, o := range map[string]acp.Options{
		"observer": {Observe: func(acp.Event) { panic("observer") }},
		"budgets": {Budgets: func(workspace.Dir) []acp.Budget {
			if asked.Add(1) > 1 { // once the turn has ended
				panic("budgets")
			}
			return nil
		}},
	} {
		store := memstore.New(t)
		o.Store = store
		w, a := openWindows(t, o)
		b := w.join()
		require.Equal(t, "end_turn", a.response(w.prompt(a, "spend 1")).stopReason(t), what)
		says(b, `"turn":{"stopReason":"end_turn"}`)
		stored := updatesOf(t, store, w.id)
		require.Equal(t, sessionstore.TurnEndUpdate, stored[len(stored)-1].Kind, what)
	}
}

// The list of a window that opens the session again for all is its own, whoever declared the folders
// that the session had.
//
// Clauses A6, A33, N7.
func TestWindowListsFolders(t *testing.T) {
	w, a := openWindows(t, acp.Options{KeepFolders: true})
	kept, gone := filepath.Join(w.dir, "kept"), filepath.Join(w.dir, "gone")
	require.NoError(t, os.Mkdir(kept, 0o700))
	a.call("session/load", rootsParams(w.id, w.dir, kept))
	a.call("session/load", rootsParams(w.id, w.dir))
	b := w.connect()
	require.Equal(t, []string{"additionalDirectories[1] missing"},
		b.try("session/load", rootsParams(w.id, w.dir, kept, gone)).findings(t))
	require.NoError(t, os.Remove(kept))
	require.Equal(t, []string{"additionalDirectories[0] missing", "additionalDirectories[1] missing"},
		b.try("session/load", rootsParams(w.id, w.dir, kept, gone)).findings(t))
	require.Equal(t, []string{"still"}, a.texts(w.id, "say still"))
}

// Another user learns nothing of a session, and cannot join, stop or delete it.
//
// Clauses N1, N7.
func TestWindowsOfAnotherUser(t *testing.T) {
	dir := folder(t)
	s, connect := lasting(t, dir, acp.ServerOptions{}, acp.Options{})
	a := connect()
	id := a.open(dir)
	turn := a.beginTurn(id, "wait", "waiting")
	eve := connectTo(t, s, acp.Peer{Principal: "eve", Remote: true})
	eve.initialize()
	for _, method := range []string{"session/load", "session/resume"} {
		require.Equal(t, "not_found", eve.try(method, rootsParams(id, dir)).reason(t))
	}
	for _, method := range []string{"session/delete", "session/archive", "session/close",
		"session/set_mode", "session/status"} {
		require.NotContains(t, encode(eve.try(method, idParams(id))), "open_elsewhere")
	}
	eve.send(notification("session/cancel", idParams(id)))
	require.NotNil(t, eve.try("session/prompt", promptParams(id, "say x")).Error)
	require.Nil(t, a.try("session/status", idParams(id)).Error)
	a.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", a.response(turn).stopReason(t))
}
