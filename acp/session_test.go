package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// within waits for a result, as long as a test is patient.
func within[T any](t *testing.T, results <-chan T) (result T) {
	t.Helper()
	select {
	case result = <-results:
	case <-time.After(patience):
		require.Fail(t, "it did not end")
	}
	return result
}

// Clause W11.
func TestUpdatesAroundResponse(t *testing.T) {
	const before, behind = 900, 3000
	all := numbers(before + behind)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{Wire: jsonrpc.Options{
		MaxQueue: 16 << 10,
		Tap: func(sent bool, line []byte) {
			if sent && bytes.Contains(line, []byte(`"messageId":"0"`)) {
				begin()
			}
		},
	}}))
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) {
		host = h
		for _, text := range all[:before] {
			require.NoError(t, h.Update(t.Context(), apart(text)))
		}
	}
	goOn := c.stall()
	defer goOn()
	request := c.post("session/new", rootsParams("", folder(t)))
	within(t, begun)
	said := make(chan error, 1)
	go func() {
		var err error
		for _, text := range all[before:] {
			if err == nil {
				err = host.Update(t.Context(), apart(text))
			}
		}
		said <- err
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, host.Update(ended, apart("never")), context.Canceled)
	goOn()
	require.NoError(t, within(t, said))
	c.response(request)
	last := all[len(all)-1]
	_, at := c.await(0, func(m message) bool {
		return strings.Contains(string(m.Params), `"messageId":"`+last+`"`)
	})
	id := c.list(`{}`)[0].SessionID
	require.Equal(t, all, texts(c.messages()[:at+1], id))
}

// Clause W6.
func TestBlockedUpdate(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)}.
		With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) { host = h }
	id := c.open(folder(t))
	c.texts(id, "say open")
	goOn := c.stall()
	defer goOn()
	said := make(chan error, 1)
	go func() {
		var err error
		for _, text := range numbers(1000) {
			if err == nil {
				err = host.Update(t.Context(), apart(text))
			}
		}
		said <- err
	}()
	for range 20 { // sooner or later the other one has the turn
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = host.Update(ctx, apart("more"))
		}()
		within(t, ended)
		cancel()
	}
	goOn()
	require.NoError(t, within(t, said))
}

// Clause W11.
func TestTitleIsStoredInTheBackground(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	r := &scripted{}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	var host backend.Host
	r.opened = func(_ backend.Activation, h backend.Host) { host = h }
	id := c.open(folder(t))
	c.texts(id, "say open")
	busy := make(chan struct{})
	store.titling = func() { <-busy }
	said := make(chan error, 1)
	go func() {
		err := host.Update(t.Context(),
			update(`{"update":{"sessionUpdate":"session_info_update","title":"T"}}`))
		if err == nil {
			err = host.Update(t.Context(), say("behind it"))
		}
		said <- err
	}()
	require.NoError(t, within(t, said))
	texts := func(m message) bool { return strings.Contains(string(m.Params), "behind it") }
	c.await(0, texts)
	close(busy)
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))
	require.Equal(t, "T", c.find(id).Title)
}

// historyTexts are the texts of a history.
func historyTexts(t *testing.T, a backend.Activation) []string {
	t.Helper()
	all := []string{}
	for u, err := range a.History {
		require.NoError(t, err)
		var update struct {
			Update struct{ Content struct{ Text string } }
		}
		require.NoError(t, json.Unmarshal(u.Raw, &update))
		all = append(all, update.Update.Content.Text)
	}
	return all
}

// A history can be read while Open runs and later, of every kind of activation.
//
// Clause A27.
func TestHistoryOfOpenSession(t *testing.T) {
	var latest backend.Activation
	var during []string
	r := &scripted{}
	c := connect(t, acp.Options{Backend: r.serve})
	r.opened = func(a backend.Activation, _ backend.Host) { latest, during = a, historyTexts(t, a) }
	c.initialize()
	a := folder(t)
	id := c.open(a)
	require.Equal(t, []string{}, during, "new")
	require.Equal(t, []string{}, historyTexts(t, latest))
	c.texts(id, "say one")
	require.Equal(t, []string{"say one", "one"}, historyTexts(t, latest))
	created := latest

	for _, method := range []string{"session/load", "session/resume"} {
		c.call(method, rootsParams(id, a))
		require.Equal(t, []string{"say one", "one"}, during, method)
		require.Equal(t, during, historyTexts(t, latest))
	}
	c.call("session/fork", rootsParams(id, a))
	require.Equal(t, []string{"say one", "one"}, during, "fork")
	c.texts(id, "say two")
	require.Equal(t, []string{"say one", "one"}, historyTexts(t, latest), "its own, from then on")
	require.Equal(t, []string{"say one", "one", "say two", "two"}, historyTexts(t, created))

	c.call("session/delete", idParams(id))
	require.Error(t, firstError(created))
	c.leave()
	require.ErrorIs(t, firstError(latest), backend.ErrClosed)
}

func firstError(a backend.Activation) error {
	for _, err := range a.History {
		if err != nil {
			return err
		}
	}
	return nil
}

// Clause S4.
func TestStoreRecovers(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	c := start(t, acp.Options{Store: store})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	store.appending = &sessionstore.UnavailableError{Medium: "/state/sessions.db",
		Hint: "free some space", Err: errors.New("disk full")}
	require.Equal(t, "store_unavailable",
		c.try("session/prompt", promptParams(id, "say two")).reason(t))
	for _, text := range []string{"three", "four"} {
		require.Equal(t, []string{text}, c.texts(id, "say "+text), "there is space again")
	}
	before := len(texts(c.messages(), id))
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{"one", "three", "four"}, texts(c.messages(), id)[before:])
}

// hanging is a store that, from when a test says so, takes no updates until it says so again.
type hanging struct {
	sessionstore.Store
	hangs     atomic.Bool
	appending chan struct{} // one for each append that has begun
	goOn      chan struct{}
}

func (h *hanging) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	if h.hangs.Load() {
		select {
		case h.appending <- struct{}{}:
		default:
		}
		<-h.goOn
	}
	return h.Store.Append(ctx, l, segment)
}

// What the backend says is with the client before it is stored, and the response behind what was
// stored.
//
// Clause W11.
func TestHangingStore(t *testing.T) {
	store := &hanging{Store: memstore.New(t), appending: make(chan struct{}, 1),
		goOn: make(chan struct{})}
	c := start(t, acp.Options{Store: store}.With(
		acp.Tuning{Recorder: sessionstore.RecorderOptions{SegmentBytes: 1,
			QueueBytes: 1 << 20}}))
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one") // and all before it is stored
	store.hangs.Store(true)
	prompt := c.post("session/prompt", promptParams(id, "count 100"))
	<-store.appending // goes on within commitTimeout
	c.await(0, said("99"))
	require.Len(t, texts(c.messages(), id), 101)
	require.Len(t, c.list(`{}`), 1, "nor is anybody else held up")
	for _, m := range c.messages() {
		require.False(t, isResponse(prompt)(m))
	}
	close(store.goOn)
	require.Equal(t, "end_turn", c.response(prompt).stopReason(t))
	require.Len(t, texts(c.messages(), id), 101)
}

// committing is a store that stores the start of a turn, and says so once a test lets it. If it
// doubts, it does not know what it has stored if the context ends meanwhile, as a database.
type committing struct {
	sessionstore.Store
	stored, goOn chan struct{}
	doubts       bool
}

func newCommitting(t *testing.T) *committing {
	return &committing{Store: memstore.New(t), stored: make(chan struct{}),
		goOn: make(chan struct{})}
}

func (c *committing) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (int64, error) {
	number, err := c.Store.BeginTurn(ctx, l, t)
	c.stored <- struct{}{}
	<-c.goOn
	if c.doubts && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return number, err
}

// cancel cancels the turns of a session, and returns once that has been done.
func (c *client) cancel(id string) {
	c.t.Helper()
	c.send(notification("session/cancel", idParams(id)))
	c.call("session/list", "{}")
}

// A prompt that is cancelled while it is being stored is shown to the other windows.
//
// Clauses N7, W11.
func TestCancelWhileAPromptIsStored(t *testing.T) {
	store := newCommitting(t)
	store.doubts = true
	w, a := openWindows(t, acp.Options{Store: store})
	b := w.join()
	turn := w.prompt(a, "say x")
	<-store.stored
	a.cancel(w.id)
	close(store.goOn)
	require.Equal(t, "cancelled", a.response(turn).stopReason(t))
	shown := conversation(w.join().messages(), w.id)
	require.NotEmpty(t, shown)
	require.Eventually(t, func() bool { return slices.Equal(shown, conversation(b.messages(), w.id)) },
		time.Minute, time.Millisecond, "it is shown after the answer, perhaps")
}

// It is shown to them later if none of them reads.
//
// Clauses N7, W11.
func TestCancelOfAPromptThatNobodyReads(t *testing.T) {
	store := newCommitting(t)
	begun, listed := make(chan struct{}, 1), make(chan struct{}, 20)
	w, a := openWindows(t, acp.Options{Store: store, Observe: func(e acp.Event) {
		switch e := e.(type) {
		case acp.TurnEvent:
			if e.Running {
				begun <- struct{}{}
			}
		case acp.RequestEvent:
			if e.Method == "session/list" {
				listed <- struct{}{}
			}
		}
	}}.With(acp.Tuning{SlowViewer: time.Hour, Wire: jsonrpc.Options{MaxQueue: 64 << 10}}))
	b := w.join()
	aGoesOn, bGoesOn := a.stall(), b.stall()
	for _, c := range []*client{a, b} {
		for range 10 { // whose responses leave no room in what it does not read
			c.post("session/list", "{}")
			<-listed
		}
	}
	turn := w.prompt(a, "say x")
	<-store.stored
	close(store.goOn)
	a.send(notification("session/cancel", idParams(w.id)))
	<-begun
	aGoesOn()
	bGoesOn()
	require.Equal(t, "cancelled", a.response(turn).stopReason(t))
	b.await(0, said("say x"))
}

// What a turn says when it is cancelled is both shown and stored, or neither.
//
// Clauses N7, W11.
func TestCancelWhileUpdatesAreStored(t *testing.T) {
	for prompt, want := range map[string][]string{"count 100": {"0", "1", "2"}, "commit x": {"x"}} {
		store := &hanging{Store: memstore.New(t), appending: make(chan struct{}, 1),
			goOn: make(chan struct{})}
		w, a := openWindows(t, acp.Options{Store: store}.With(acp.Tuning{
			Recorder: sessionstore.RecorderOptions{SegmentBytes: 1, QueueBytes: 1}}))
		a.texts(w.id, "say one") // and all before it is stored
		store.hangs.Store(true)
		turn := w.prompt(a, prompt)
		<-store.appending
		if len(want) > 1 {
			a.await(0, said("2")) // for which the recorder has no room
		}
		a.cancel(w.id)
		close(store.goOn)
		require.Equal(t, "cancelled", a.response(turn).stopReason(t))
		require.Equal(t, append([]string{"one"}, want...), texts(a.messages(), w.id))
		all := strings.Join(texts(a.messages(), w.id), "")
		require.Equal(t, all, strings.Join(recorded(t, store, w.id), ""))
	}
}

// remember gives a session a turn that said texts, each as a message of its own.
func remember(t *testing.T, store sessionstore.Store, id string, texts ...string) {
	t.Helper()
	session, err := store.Get(t.Context(), sessionstore.ID(id))
	require.NoError(t, err)
	l, err := store.Activate(t.Context(), session.ID, sessionstore.Activation{Keys: session.Keys})
	require.NoError(t, err)
	turn, err := store.BeginTurn(t.Context(), l, sessionstore.Turn{Title: "long"})
	require.NoError(t, err)
	for part := range slices.Chunk(texts, 1000) {
		var segment []sessionstore.Update
		for _, text := range part {
			segment = append(segment, apart(text))
		}
		require.NoError(t, store.Append(t.Context(), l, segment))
	}
	require.NoError(t, store.EndTurn(t.Context(), l, turn))
}

// apart is a message of its own, which is not joined with its neighbours.
func apart(text string) sessionstore.Update {
	return sessionstore.StoredUpdate([]byte(`{"update":{"sessionUpdate":"agent_message_chunk",` +
		`"messageId":` + encode(text) + `,"content":` +
		encode(map[string]string{"type": "text", "text": text}) + `}}`))
}

// numbers are those below n.
func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

// Clause S9.
func TestStoppedClient(t *testing.T) {
	const (
		updates  = 3_000
		sessions = 36
		size     = 256 << 10 // of what a session's turn says
		logBound = 8 << 20   // twice what the log may keep when it is emptied
	)
	dir := t.TempDir()
	one, two := sqlite.New(sqlite.Options{Dir: dir}), sqlite.New(sqlite.Options{Dir: dir})
	t.Cleanup(func() {
		require.NoError(t, one.Close())
		require.NoError(t, two.Close())
	})
	slow := connect(t,
		acp.Options{Store: one}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 64 << 10}}))
	same, other := connect(t, acp.Options{Store: one}), connect(t, acp.Options{Store: two})
	for _, c := range []*client{slow, same, other} {
		c.initialize()
	}
	a := folder(t)
	id := slow.open(a)
	remember(t, one, id, numbers(updates)...)

	load, line := slow.request("session/load", rootsParams(id, a))
	before := len(slow.messages())
	slow.send(line)
	slow.await(before, said("0"))
	goOn := slow.stall()
	text := strings.Repeat("x", size)
	for i := range sessions { // 9 MiB
		c := []*client{same, other}[i%2]
		session := c.open(a)
		require.Equal(t, []string{"here"}, c.texts(session, "say here"))
		remember(t, two, session, text)
		require.Eventually(t, func() bool { // another reader may delay this until the next write
			log, err := os.Stat(filepath.Join(dir, "sessions.db-wal"))
			if err != nil || log.Size() < logBound {
				return err == nil
			}
			remember(t, two, session, "again")
			return false
		}, time.Minute, time.Millisecond, "after %d sessions", i+1)
	}
	require.Less(t, len(slow.messages()), updates, "the client stopped in the middle")

	goOn()
	require.Nil(t, slow.response(load).Error)
	_, answered := slow.await(before, isResponse(load))
	require.Equal(t, numbers(updates), texts(slow.messages()[before:answered], id))
}

// Clause W11.
func TestCancelWhileClientDoesNotRead(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)}.
		With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	id, waiting := c.open(folder(t)), c.open(folder(t))
	flood, line := c.request("session/prompt", promptParams(id, "count 100000000"))
	other := c.beginTurn(waiting, "wait", "waiting")
	c.send(line)
	c.await(0, said("0"))
	goOn := c.stall()
	for i, session := range []string{id, waiting} {
		c.send(notification("session/cancel",
			`{"sessionId":"`+session+`","_meta":{"of":"`+session+`"}}`))
		require.Eventually(t, func() bool { // the backend is not told if its prompt has just ended
			return int(r.returned.Load()) > i || strings.Contains(strings.Join(r.noted(), "\n"),
				`cancel {"_meta":{"of":"`+session+`"}}`)
		}, patience, time.Millisecond)
	}
	goOn()
	require.Equal(t, "cancelled", c.response(flood).stopReason(t))
	require.Equal(t, "cancelled", c.response(other).stopReason(t))
}

// Clause W6.
func TestCancelWaitingLoad(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a, b := folder(t), folder(t)
	id := c.open(a)
	first, firstLine := c.request("session/resume", rootsParams(id, a))
	second, secondLine := c.request("session/load", rootsParams(id, a, b))
	third, thirdLine := c.request("session/prompt", promptParams(id, "roots"))
	c.send(firstLine, secondLine, thirdLine,
		notification("$/cancel_request", `{"requestId":`+second+`}`))
	require.Equal(t, jsonrpc.CodeCancelled, c.response(second).Error.Code)
	close(r.hold)
	require.Nil(t, c.response(first).Error)
	require.Equal(t, "end_turn", c.response(third).stopReason(t))
	require.Equal(t, []string{"[" + a + "]"}, texts(c.messages(), id))
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories, "A13: nothing changed")
}

// Clause A27.
func TestCancelledLoadIsReplayed(t *testing.T) {
	store := memstore.New(t)
	c := start(t,
		acp.Options{Store: store}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10}}))
	a, b := folder(t), folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(2000)...)
	load, line := c.request("session/load", rootsParams(id, a, b))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	goOn := c.stall()
	c.send(notification("$/cancel_request", `{"requestId":`+load+`}`))
	c.send(notification("session/cancel", idParams(id)))
	goOn()
	require.Nil(t, c.response(load).Error)
	require.Len(t, texts(c.messages(), id), 2000)
	require.Equal(t, []string{b}, c.find(id).AdditionalDirectories)
	require.Equal(t, []string{"[" + a + ", " + b + "]"}, c.texts(id, "roots"))
}

// Clause W9.
func TestEndOfInputDuringLoad(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store}.With(
		acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10, Grace: patience}}))
	a := folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(1500)...)
	load, line := c.request("session/load", rootsParams(id, a))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	c.leave()
	require.Nil(t, c.response(load).Error)
	require.Len(t, texts(c.messages(), id), 1500)
}

// Clause W9.
func TestClientGoneDuringLoad(t *testing.T) {
	store := memstore.New(t)
	c := start(t, acp.Options{Store: store}.With(
		acp.Tuning{Wire: jsonrpc.Options{MaxQueue: 16 << 10, Grace: time.Millisecond}}))
	a := folder(t)
	id := c.open(a)
	remember(t, store, id, numbers(1500)...)
	_, line := c.request("session/load", rootsParams(id, a))
	before := len(c.messages())
	c.send(line)
	c.await(before, said("0"))
	goOn := c.stall()
	defer goOn()
	_ = c.in.Close()
	select {
	case err := <-c.served:
		c.served <- nil
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("a load that nobody reads holds up the end")
	}
}

// serve makes the backend known to an agent.
func (r *scripted) serve() backend.Backend { return r }

// hosts are those of the sessions that open from now on.
func (r *scripted) hosts() <-chan backend.Host {
	hosts := make(chan backend.Host, 10)
	r.opened = func(_ backend.Activation, h backend.Host) { hosts <- h }
	return hosts
}

// write writes a file below a root.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// Clause A25.
func TestCatalogAtOpen(t *testing.T) {
	r := &scripted{}
	c := served(t, acp.Options{Backend: r.serve})
	a, b := folder(t), folder(t)
	write(t, a, "AGENTS.md", "be kind")
	write(t, b, ".claude/commands/deploy.md", "deploy it")
	hosts := r.hosts()
	id := c.open(a, b)
	require.Len(t, (<-hosts).Catalog().Artifacts(), 2, "in Open already")
	require.Equal(t, []string{"instruction AGENTS.md of 0, command deploy of 1"},
		c.texts(id, "catalog"))

	c.call("session/load", rootsParams(id, a, []string{}...))
	require.Len(t, (<-hosts).Catalog().Artifacts(), 1, "A12: of the new roots")
	require.Equal(t, []string{"instruction AGENTS.md of 0"}, c.texts(id, "catalog"))
	other := c.open(b)
	require.Equal(t, []string{"command deploy of 0"}, c.texts(other, "catalog"), "A22")
	require.Equal(t, []string{"instruction AGENTS.md of 0"}, c.texts(id, "catalog"))
	write(t, b, "AGENTS.md", "be brief")
	require.Equal(t, []string{"instruction AGENTS.md of 0, command deploy of 0"},
		c.texts(other, "catalog"), "a prompt looks again")
}
