package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Clause A28.
func TestDeleteOfDeletedSession(t *testing.T) {
	store := memstore.New(t)
	old, newer := start(t, acp.Options{Store: store}), start(t, acp.Options{Store: store})
	id := old.open(folder(t))
	prompt := old.beginTurn(id, "wait", "waiting")
	newer.call("session/delete", idParams(id))
	deletion := old.post("session/delete", idParams(id))
	require.Nil(t, old.response(deletion).Error)
	_, at := old.await(0, isResponse(deletion))
	require.Equal(t, []string{"cancelled"}, stopReasons(t, old.messages()[:at], prompt))
}

// stopReasons are those of a prompt's answers.
func stopReasons(t *testing.T, messages []message, prompt string) []string {
	var all []string
	for _, m := range messages {
		if isResponse(prompt)(m) {
			all = append(all, m.stopReason(t))
		}
	}
	return all
}

// Clause S3.
func TestLoadAfterFence(t *testing.T) {
	store := memstore.New(t)
	late := sessionstore.RecorderOptions{Interval: time.Hour}
	old, newer := start(t, acp.Options{Store: store}.With(acp.Tuning{Recorder: late})),
		start(t, acp.Options{Store: store})
	a := folder(t)
	id := old.open(a)
	prompt := old.beginTurn(id, "wait", "waiting")
	newer.call("session/load", rootsParams(id, a))
	newer.texts(id, "say yours")
	old.call("session/load", rootsParams(id, a))
	require.Equal(t, "cancelled", old.response(prompt).stopReason(t))
	_, answered := old.await(0, isResponse(prompt))
	require.Equal(t, []string{"yours"}, texts(old.messages()[answered:], id),
		"what the old turn said belongs before what the newer one was asked")
	require.Equal(t, []string{"mine again"}, old.texts(id, "say mine again"))
}

// Clause A27.
func TestFailedReplayClosesSession(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	r := &scripted{}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	store.read = &sessionstore.UnavailableError{Medium: "/state/sessions.db", Hint: "run repair",
		Err: errors.New("damaged")}
	require.Equal(t, "store_unavailable", c.try("session/load", rootsParams(id, a)).reason(t))
	require.Equal(t, "not_active", c.try("session/prompt", promptParams(id, "say two")).reason(t))
	require.Equal(t, 2, strings.Count(encode(r.noted()), `"close"`), "both activations are freed")
	store.read = nil
	c.call("session/load", rootsParams(id, a))
	require.Equal(t, []string{"three"}, c.texts(id, "say three"))
}

// Clause A12.
func TestCancelledLoadWaitsForTurn(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{CancelGrace: patience}))
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt := c.beginTurn(id, "stubborn", "stubborn")
	load := c.post("session/load", rootsParams(id, a, b))
	require.Eventually(t, func() bool {
		return len(c.find(id).AdditionalDirectories) == 1
	}, patience, time.Millisecond)
	c.send(notification("$/cancel_request", `{"requestId":`+load+`}`))
	for range 100 {
		c.list(`{}`)
	}
	close(r.release)
	require.Nil(t, c.response(load).Error)
	_, ended := c.await(0, isResponse(prompt))
	_, loaded := c.await(0, isResponse(load))
	require.Less(t, ended, loaded, "the turn is answered before the switch")
	require.Equal(t, []string{"stubborntoo late"}, texts(c.messages()[ended:], id),
		"its last words are in the history")
}

// linkTo makes, or moves, a link of the test's own to a folder.
func linkTo(t *testing.T, link, target string) {
	t.Helper()
	if err := os.Remove(link); err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.NoError(t, os.Symlink(target, link))
}

// by are the ids of the sessions with a working directory.
func (c *client) by(cwd string) []string {
	c.t.Helper()
	ids := []string{}
	for _, s := range c.list(encode(map[string]any{"cwd": cwd})) {
		ids = append(ids, s.SessionID)
	}
	return ids
}

// Clause A17.
func TestMissingFolder(t *testing.T) {
	c := start(t, acp.Options{})
	parent := folder(t)
	a, link := filepath.Join(parent, "a"), filepath.Join(parent, "link")
	require.NoError(t, os.Mkdir(a, 0o700))
	linkTo(t, link, a)
	id := c.open(link)
	require.NoError(t, os.Remove(a))
	require.Equal(t, []string{id}, c.by(a), "the real path on record")
	require.Equal(t, []string{id}, c.by(link), "the spelling")
	require.Empty(t, c.by(parent))
}

// reach has the session ask the client for a file, and returns what came of it.
func (c *client) reach(id, path string) string {
	c.t.Helper()
	c.answer(func(message) string { return `{"content":"read"}` })
	return c.texts(id, "call fs/read_text_file "+encode(map[string]string{"path": path}))[0]
}

// Clause A12.
func TestFileAccessAfterLoad(t *testing.T) {
	for _, method := range opening[1:3] {
		t.Run(method, func(t *testing.T) {
			c := start(t, acp.Options{})
			a, b, d := folder(t), folder(t), folder(t)
			for _, dir := range []string{a, b, d} {
				write(t, dir, "file", "x")
			}
			file := func(dir string) string { return filepath.Join(dir, "file") }
			id := c.open(a, b)
			require.Contains(t, c.reach(id, file(b)), "read")
			require.Contains(t, c.reach(id, file(d)), "outside")
			c.call(method, rootsParams(id, a, d))
			require.Contains(t, c.reach(id, file(a)), "read")
			require.Contains(t, c.reach(id, file(d)), "read")
			require.Contains(t, c.reach(id, file(b)), "outside")
			require.NotNil(t,
				c.try(method, rootsParams(id, a, b, filepath.Join(a, "missing"))).Error)
			require.Contains(t, c.reach(id, file(d)), "read", "a failed one changes nothing")
			require.Contains(t, c.reach(id, file(b)), "outside")
		})
	}
}

// Clause A12.
func TestFailedLoadKeepsTurn(t *testing.T) {
	r, store := &scripted{}, &hooked{Store: memstore.New(t)}
	c := start(t, acp.Options{Backend: using(r), Store: store})
	a, b := folder(t), folder(t)
	id := c.open(a)
	prompt := c.beginTurn(id, "wait", "waiting")
	r.refuse = errors.New("not today")
	require.Equal(t, jsonrpc.CodeInternal, c.try("session/load", rootsParams(id, a, b)).Error.Code)
	r.refuse = nil
	require.NotContains(t, fmt.Sprint(r.noted()), "close")
	store.activate = &sessionstore.UnavailableError{Medium: "/state/sessions.db",
		Hint: "free some space", Err: errors.New("disk full")}
	m := c.try("session/resume", rootsParams(id, a, b))
	require.Equal(t, "store_unavailable", m.reason(t))
	require.Contains(t, m.Error.Message, storeError("free some space"), "S4")
	require.Contains(t, m.Error.Message, storeError("/state/sessions.db"), "S4")
	_, rejected := c.busy(id)
	require.Equal(t, "turn_in_progress", rejected.reason(t))
	require.Equal(t, []string{}, c.find(id).AdditionalDirectories,
		"A13: the old list is the authoritative one")
	c.send(notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	said := c.texts(id, "roots")[0]
	require.Contains(t, said, a)
	require.NotContains(t, said, b)
}

// Clause S8.
func TestFailedStoreRejectsPrompt(t *testing.T) {
	r := &scripted{}
	store := &hooked{Store: memstore.New(t)}
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	id := c.open(folder(t))
	store.begin = &sessionstore.UnavailableError{Medium: "/state/sessions.db",
		Hint: "free some space", Err: errors.New("disk full")}
	require.Equal(t, "store_unavailable",
		c.try("session/prompt", promptParams(id, "say x")).reason(t))
	require.NotContains(t, r.noted(), "prompt say x", "the backend acts only on what is stored")
	store.begin = nil
	require.Equal(t, []string{"y"}, c.texts(id, "say y"), "the session goes on")
}

// twoWindows connects two clients whose agents are like two processes: each has its own store on
// the same file.
func twoWindows(t *testing.T, older acp.Options) (old, newer *client) {
	t.Helper()
	dir := t.TempDir()
	open := func() sessionstore.Store {
		store := sqlite.New(sqlite.Options{Dir: dir})
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	older.Store = open()
	old, newer = start(t, older), start(t, acp.Options{Store: open()})
	return old, newer
}

// Whatever the agent says once another window has the session is not stored, so the answer says so,
// even if the agent was silent until it completed the turn.
//
// Clause S11.
func TestAnswerOfTurnWhoseSessionIsGone(t *testing.T) {
	for what, test := range map[string]struct {
		take         func(newer *client, id, cwd string)
		reason, want string
	}{
		"opened": {func(c *client, id, cwd string) { c.call("session/load", rootsParams(id, cwd)) },
			"fenced", "This session was opened in another window"},
		"deleted": {func(c *client, id, _ string) { c.call("session/delete", idParams(id)) },
			"not_found", "deleted in another window"},
	} {
		t.Run(what, func(t *testing.T) {
			r := &scripted{release: make(chan struct{})}
			old, newer := twoWindows(t, acp.Options{Backend: using(r)}.
				With(acp.Tuning{LeaseCheck: time.Hour}))
			a := folder(t)
			id := old.open(a)
			prompt := old.beginTurn(id, "stubborn", "stubborn")
			time.Sleep(300 * time.Millisecond) // until that is stored
			test.take(newer, id, a)
			close(r.release)
			require.Equal(t, test.reason, old.response(prompt).reason(t))
			_, answered := old.await(0, isResponse(prompt))
			told := texts(old.messages()[:answered], id)
			require.Contains(t, told, "too late")
			require.Contains(t, told[len(told)-1], test.want)
			require.Contains(t, told[len(told)-1], "this turn was not saved")
			m := old.try("session/prompt", promptParams(id, "say lost"))
			require.NotNil(t, m.Error)
		})
	}
}

// An agent may send updates for a while after another window has taken the session.
//
// Clause S3.
func TestUpdatesAfterTakeover(t *testing.T) {
	var host backend.Host
	r := &scripted{release: make(chan struct{}), opened: func(_ backend.Activation, h backend.Host) { host = h }}
	old, newer := twoWindows(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := old.open(a)
	prompt := old.beginTurn(id, "stubborn", "stubborn")
	time.Sleep(300 * time.Millisecond) // until that is stored
	newer.call("session/load", rootsParams(id, a))
	var err error
	require.Eventually(t, func() bool {
		err = host.Update(t.Context(), say("late"))
		return err != nil
	}, patience, 10*time.Millisecond)
	require.ErrorIs(t, err, backend.ErrFenced)
	close(r.release)
	old.response(prompt)
}

// A turn ends soon after another window has taken the session, even if the agent says nothing.
//
// Clauses S3, S11.
func TestTakeoverDuringTurn(t *testing.T) {
	for prompt, says := range map[string]string{"wait": "waiting", "drip": "drip"} {
		old, newer := twoWindows(t, acp.Options{})
		a := folder(t)
		id := old.open(a)
		turn := old.beginTurn(id, prompt, says)
		time.Sleep(300 * time.Millisecond) // until that is stored
		newer.call("session/load", rootsParams(id, a))
		m := old.response(turn)
		require.Equal(t, "fenced", m.reason(t))
		require.Contains(t, m.Error.Message, "another window")
		_, answered := old.await(0, isResponse(turn))
		told := texts(old.messages()[:answered], id)
		require.Contains(t, told[len(told)-1], "This session was opened in another window")
		require.Equal(t, []string{"yours"}, newer.texts(id, "say yours"))
	}
}

// An agent that asks while no turn runs gets an answer when another window takes the session, and
// the user is told why the question is withdrawn.
//
// Clause S11.
func TestTakeoverOfAQuestionOutsideTurns(t *testing.T) {
	for what, test := range map[string]struct {
		take func(newer *client, id, cwd string)
		want string
	}{
		"opened": {func(c *client, id, cwd string) { c.call("session/load", rootsParams(id, cwd)) },
			"This session was opened in another window. The question is withdrawn"},
		"deleted": {func(c *client, id, _ string) { c.call("session/delete", idParams(id)) },
			"This session was deleted in another window. The question is withdrawn"},
	} {
		t.Run(what, func(t *testing.T) {
			var host backend.Host
			r := &scripted{opened: func(_ backend.Activation, h backend.Host) { host = h }}
			old, newer := twoWindows(t, acp.Options{Backend: using(r)})
			a := folder(t)
			id := old.open(a)
			old.texts(id, "say hello") // it is stored, so that it may be deleted
			method, params, _ := strings.Cut(strings.TrimPrefix(askPermission, "call "), " ")
			answered := make(chan string, 1)
			go func() {
				result, err := host.Call(t.Context(), method, backend.Raw(params))()
				answered <- fmt.Sprintf("%s %v", result, err)
			}()
			question(old)
			test.take(newer, id, a)
			old.await(0, func(m message) bool { return m.Method == "$/cancel_request" })
			require.Equal(t, cancelled+" <nil>", <-answered)
			require.Eventually(t, func() bool {
				told := texts(old.messages(), id)
				return strings.Contains(told[len(told)-1], test.want)
			}, patience, time.Millisecond)
		})
	}
}

// Clause S1.
func TestState(t *testing.T) {
	r := &scripted{}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	c.texts(id, "state of mine")
	c.call("session/close", idParams(id))
	c.call("session/resume", rootsParams(id, a))
	require.Contains(t, fmt.Sprint(r.noted()), "state=of mine")
}

// Loads that do not wait for each other end with the servers that the last one names, on its roots.
//
// Clauses A12, M3.
func TestPipelinedLoads(t *testing.T) {
	notOverRemote(t, namesServers)
	c := served(t, acp.Options{})
	one, two := server("one", "files"), server("two", "files")
	dirs := []string{folder(t), folder(t), folder(t), folder(t), folder(t), folder(t)}
	id := c.serve(dirs[:1], one, two)
	require.Equal(t, uris(t, dirs[0]), c.use(id, "one.roots"))
	require.Equal(t, uris(t, dirs[0]), c.use(id, "two.roots"))
	upon := func(lists [][]string, servers ...map[string]any) {
		var ids, lines []string
		for _, roots := range lists {
			load, line := c.request("session/load", servedParams(id, roots, servers...))
			ids, lines = append(ids, load), append(lines, line)
		}
		c.send(lines...)
		for _, load := range ids {
			require.Nil(t, c.response(load).Error)
		}
		told := c.texts(id, "use one.roots") // perhaps after word of a restart
		require.Equal(t, uris(t, lists[len(lists)-1]...), told[len(told)-1])
	}
	var growing, shrinking [][]string
	for i := range dirs[1:] {
		growing = append(growing, dirs[:i+2])
		shrinking = append(shrinking, dirs[:len(dirs)-1-i])
	}
	upon(growing, one, two)
	require.Equal(t, len(growing), c.changes(id, "one"))
	require.Equal(t, len(growing), c.changes(id, "two"))
	upon(shrinking, one)
	for range volume.Of(2, 20) {
		upon([][]string{dirs, dirs[:2], dirs[:3], dirs[:1]}, one)
	}
	upon([][]string{dirs, dirs[:1], dirs}, two, one)
	require.Equal(t, uris(t, dirs...), c.use(id, "two.roots"))
}

// hooked is a store in which a test steps in.
type hooked struct {
	sessionstore.Store

	mu         sync.Mutex
	creating   func() // called once, right before the next creation
	activating func() // called once, right before the next activation
	titling    func() // called once, right before the next title is stored
	ending     func() // called once, right before the next end of a turn
	listing    func() // called once, right before the next list
	getting    func() // called once, right before the next record is read
	appending  error  // of the next Append

	activate, begin, read error // of Activate, BeginTurn and Segments

	broken atomic.Bool // the ledger fails
}

func (h *hooked) Create(ctx context.Context, n sessionstore.Session) (sessionstore.Lease, error) {
	if step := take(&h.mu, &h.creating); step != nil {
		step()
	}
	return h.Store.Create(ctx, n)
}

func (h *hooked) Get(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if step := take(&h.mu, &h.getting); step != nil {
		step()
	}
	return h.Store.Get(ctx, id)
}

func (h *hooked) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	if step := take(&h.mu, &h.listing); step != nil {
		step()
	}
	return h.Store.List(ctx, q)
}

func (h *hooked) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (sessionstore.Lease, error) {
	if step := take(&h.mu, &h.activating); step != nil {
		step()
	}
	if h.activate != nil {
		return sessionstore.Lease{}, h.activate
	}
	return h.Store.Activate(ctx, id, a)
}

func (h *hooked) Append(
	ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update,
) error {
	if err := take(&h.mu, &h.appending); err != nil {
		return err
	}
	return h.Store.Append(ctx, l, segment)
}

func (h *hooked) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	if step := take(&h.mu, &h.titling); step != nil {
		step()
	}
	return h.Store.SetTitle(ctx, l, title)
}

func (h *hooked) BeginTurn(
	ctx context.Context, l sessionstore.Lease, t sessionstore.Turn,
) (int64, error) {
	if h.begin != nil {
		return 0, h.begin
	}
	return h.Store.BeginTurn(ctx, l, t)
}

func (h *hooked) EndTurn(
	ctx context.Context, l sessionstore.Lease, number int64, last ...sessionstore.Update,
) error {
	if step := take(&h.mu, &h.ending); step != nil {
		step()
	}
	return h.Store.EndTurn(ctx, l, number, last...)
}

func (h *hooked) Segments(
	ctx context.Context, id sessionstore.ID, after int64,
) iter.Seq2[sessionstore.Segment, error] {
	if h.read == nil {
		return h.Store.Segments(ctx, id, after)
	}
	return func(yield func(sessionstore.Segment, error) bool) { yield(sessionstore.Segment{}, h.read) }
}

func (h *hooked) Charge(ctx context.Context, l sessionstore.Lease, c []sessionstore.Charge) error {
	if h.broken.Load() {
		return &sessionstore.UnavailableError{Err: errors.New("the disk is full")}
	}
	return h.Store.Charge(ctx, l, c)
}

// take returns what is in place and clears it.
func take[T any](mu *sync.Mutex, place *T) (taken T) {
	mu.Lock()
	defer mu.Unlock()
	taken, *place = *place, taken
	return taken
}

// Clause S3.
func TestConcurrentTakeovers(t *testing.T) {
	store := &hooked{Store: memstore.New(t)}
	r := &scripted{release: make(chan struct{})}
	late := sessionstore.RecorderOptions{Interval: time.Hour}
	old := start(t, acp.Options{Store: store, Backend: using(r)}.
		With(acp.Tuning{Recorder: late, CancelGrace: patience}))
	newer := start(t, acp.Options{Store: store})
	a := folder(t)
	id := old.open(a)
	prompt := old.beginTurn(id, "stubborn", "stubborn")
	taken := make(chan struct{})
	store.activating = func() {
		defer close(taken)
		// The older process has seen that it holds the session, and is about to activate it.
		newer.call("session/load", rootsParams(id, a))
		newer.texts(id, "say yours")
	}
	load := old.post("session/load", rootsParams(id, a))
	<-taken
	require.Eventually(t, func() bool {
		return newer.try("session/prompt", promptParams(id, "say lost")).Error != nil
	}, patience, time.Millisecond)
	close(r.release)
	old.response(prompt)
	require.Nil(t, old.response(load).Error)
	_, answered := old.await(0, isResponse(prompt))
	replayed := texts(old.messages()[answered:], id)
	require.Contains(t, replayed, "yours")
	require.NotContains(t, encode(replayed), "stubborn",
		"the fenced turn is not recorded behind the newer one's")
}

// Clause A29.
func TestTurnEndedByLoad(t *testing.T) {
	for _, method := range []string{"session/load", "session/resume"} {
		t.Run(method, func(t *testing.T) {
			r := &scripted{release: make(chan struct{})}
			c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{CancelGrace: patience}))
			a, b := folder(t), folder(t)
			id := c.open(a)
			prompt := c.beginTurn(id, "stubborn", "stubborn")
			begun := c.find(id).UpdatedAt
			load := c.post(method, rootsParams(id, a, b))
			require.Eventually(t, func() bool {
				return len(c.find(id).AdditionalDirectories) == 1
			}, patience, time.Millisecond)
			require.Equal(t, begun, c.find(id).UpdatedAt,
				"the load is no activity, and the turn goes on")
			released := later(t, begun)
			close(r.release)
			require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
			require.Nil(t, c.response(load).Error)
			ended := c.find(id).UpdatedAt
			require.GreaterOrEqual(t, ended, released)
			later(t, ended)
			c.call(method, rootsParams(id, a))
			require.Equal(t, ended, c.find(id).UpdatedAt, "without a turn")
		})
	}
}

// later waits until the clock shows a later time than at, as a list shows times, and returns it.
func later(t *testing.T, at string) (now string) {
	t.Helper()
	require.Eventually(t, func() bool {
		now = time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")
		return now > at
	}, patience, time.Millisecond)
	return now
}

// speaking is a scripted backend that answers a prompt with the updates that a test gives.
type speaking struct {
	scripted
	updates []string
}

func (r *speaking) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	return &speakingSession{scriptedSession{runtime: &r.scripted, host: h}, r},
		backend.Opened{Result: backend.Raw(r.result)}, nil
}

type speakingSession struct {
	scriptedSession
	speaking *speaking
}

func (s *speakingSession) Prompt(
	ctx context.Context, _ backend.Raw, u backend.Updates,
) backend.Work {
	return func() (backend.Raw, error) {
		for _, raw := range s.speaking.updates {
			if err := u.Update(ctx, update(`{"update":`+raw+`}`)); err != nil {
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
			// the adapter's own
			if !strings.Contains(string(p.Update), `"availableCommands":[`+ownEntries+`]`) {
				all = append(all, string(p.Update))
			}
		}
	}
	return all
}

// Clause A27.
func TestKindsInReplay(t *testing.T) {
	history := []string{
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"plan","entries":[{"content":"do it","priority":"high",` +
			`"status":"pending"}]}`,
		`{"sessionUpdate":"tool_call","toolCallId":"done","title":"Done","status":"in_progress"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"done","status":"completed"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"failed","title":"Failed","status":"failed"}`,
		`{"sessionUpdate":"tool_call","toolCallId":"open","title":"Open"}`,
		`{"sessionUpdate":"_future_kind","anything":[1e5,{"b":1,"a":2}]}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"",` +
			`"mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"there"},` +
			`"_meta":{"x":1}}`,
	}
	state := func(n string) []string {
		return []string{
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"c` + n +
				`","description":"d"},` + ownEntries + `]}`,
			`{"sessionUpdate":"current_mode_update","currentModeId":"m` + n + `"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[],"_meta":{"n":` + n + `}}`,
			`{"sessionUpdate":"usage_update","used":` + n + `,"size":9}`,
		}
	}
	r, store := &speaking{updates: slices.Concat(state("1"), history, state("2"))},
		memstore.New(t)
	c := start(t, acp.Options{Store: store, Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	require.Equal(t, "end_turn", c.try("session/prompt", promptParams(id, "go")).stopReason(t))
	require.Subset(t, shown(t, c.messages(), id), r.updates, "each was shown when it came")
	c.leave()

	d := start(t, acp.Options{Store: store, Backend: using(r)})
	before := len(d.messages())
	d.call("session/resume", rootsParams(id, a))
	d.call("session/fork", rootsParams(id, a))
	for _, m := range d.messages()[before:] {
		for _, update := range history {
			require.NotContains(t, string(m.Params), update, "a resume and a fork replay nothing")
		}
	}
	before = len(d.messages())
	load := d.post("session/load", rootsParams(id, a))
	require.Nil(t, d.response(load).Error)
	_, answered := d.await(before, isResponse(load))
	got := shown(t, d.messages()[before:answered], id)
	require.Len(t, got, 1+len(history)+1+4)
	require.JSONEq(t,
		`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"go"}}`, got[0])
	require.Equal(t, history, got[1:1+len(history)], "in order, byte by byte")
	require.JSONEq(t, `{"sessionUpdate":"tool_call_update","toolCallId":"open","status":"failed"}`,
		got[1+len(history)])
	require.ElementsMatch(t, state("2"), got[2+len(history):], "once, as they are now")
	d.call("session/list", `{}`)
	for _, m := range d.messages()[answered+1:] {
		require.NotEqual(t, "session/update", m.Method, "all of it came before the answer")
	}
}

// Clause A27.
func TestStatesInResponse(t *testing.T) {
	result := `{"modes":{"currentModeId":"m","availableModes":[]},"configOptions":[]}`
	c := start(t, acp.Options{Backend: using(&speaking{scripted: scripted{result: result},
		updates: []string{
			`{"sessionUpdate":"current_mode_update","currentModeId":"old"}`,
			`{"sessionUpdate":"config_option_update","configOptions":[]}`,
			`{"sessionUpdate":"usage_update","used":1,"size":9}`,
		}})})
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

// A link that was moved while a session was closed must not grant another folder unnoticed.
//
// Clause C13.
func TestMovedRootIsTold(t *testing.T) {
	a, b, other := folder(t), folder(t), folder(t)
	cwd, additional := filepath.Join(folder(t), "cwd"), filepath.Join(folder(t), "additional")
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		t.Run(method, func(t *testing.T) {
			c := start(t, acp.Options{})
			linkTo(t, cwd, a)
			linkTo(t, additional, other)
			id := c.open(cwd, additional)
			c.call(method, rootsParams(id, cwd, additional))
			require.Empty(t, texts(c.messages(), id), "nothing has moved")

			linkTo(t, cwd, b)
			linkTo(t, additional, b)
			request := c.post(method, rootsParams(id, cwd, additional))
			notice, _ := c.await(0, func(m message) bool {
				return strings.Contains(string(m.Params), "now leads to")
			})
			for _, line := range []string{
				"The folder " + cwd + " now leads to " + b +
					". When this session was last opened, it led to " + a + ".",
				"The folder " + additional + " now leads to " + b +
					". When this session was last opened, it led to " + other + ".",
			} {
				require.Contains(t, string(notice.Params), line)
			}
			c.response(request)
			if method == "session/fork" {
				return
			}
			from := len(c.messages())
			c.call("session/load", rootsParams(id, cwd, additional))
			c.texts(id, "say done")
			for _, m := range c.messages()[from:] {
				require.NotContains(t, string(m.Params), "now leads to",
					"it is said once, and not recorded")
			}
		})
	}
}

// After a folder was renamed, the errors name the command that moves its sessions, and the folder
// that was renamed.
//
// Clause A11.
func TestRenamedFolder(t *testing.T) {
	parent, lib := folder(t), folder(t)
	at := func(names ...string) string {
		return filepath.Join(append([]string{parent}, names...)...)
	}
	require.NoError(t, os.MkdirAll(at("old", "app"), 0o700))
	require.NoError(t, os.MkdirAll(at("old", "shared"), 0o700))
	c := start(t,
		acp.Options{KeepFolders: true, ConsentDir: filepath.Join(t.TempDir(), "consents")})
	c.permit("allow-once")
	id, other, added := c.open(at("old", "app"), lib), c.open(lib, at("old", "shared")), c.open(lib)
	c.say(added, "/roots add "+at("old", "shared"))
	message := func(method, params string) string {
		m := c.try(method, params)
		require.NotNil(t, m.Error)
		return m.Error.Message
	}
	require.NotContains(t, message("session/load", rootsParams(id, lib)), "sessions move",
		"nothing was renamed")
	require.NoError(t, os.Rename(at("old"), at("the new")))
	command := "; if the folder was renamed, run: acp-agent sessions move " + at("old") + " "
	for _, method := range []string{"session/load", "session/resume"} {
		require.Contains(t, message(method, rootsParams(id, at("old", "app"))),
			"does not exist: create the folder or give another one"+command+"NEW-FOLDER")
		require.Contains(t, message(method, rootsParams(id, at("the new", "app"))),
			"use "+at("old", "app")+command+"'"+at("the new")+"'")
		require.Contains(t, message(method, rootsParams(id, lib)),
			"sessions move "+at("old", "app")+" "+lib, "the end of the path is another")
		require.NotContains(t, message(method, rootsParams(other, lib, at("old", "shared"))),
			"sessions move", "the client can name another")
	}
	require.NotContains(t, message("session/new", rootsParams("", at("old", "app"))),
		"sessions move")
	for _, open := range []string{id, other, added} {
		require.Contains(t, c.say(open, "/roots add "+folder(t)), command+"NEW-FOLDER")
	}
	require.NotContains(t, c.say(c.open(lib), "/roots add "+at("old")), "sessions move",
		"it is not a folder of the session")
	require.Contains(t, c.say(added, "/roots remove "+at("old", "shared")), "Removed")
}

// An editor that is known to keep up loads 20,000 updates, from the backend and from the store.
func BenchmarkLongLoad(b *testing.B) {
	const updates = 20_000
	store, dir, id := memstore.New(b), b.TempDir(), ""
	for _, from := range []struct {
		name    string
		backend backend.Backend
	}{{"backend", &replayer{says: answers(numbers(updates)...)}}, {"store", &scripted{}}} {
		c := start(b, acp.Options{Store: store, Backend: using(from.backend)})
		if id == "" {
			id = c.open(dir)
		}
		b.Run(from.name, func(b *testing.B) {
			for b.Loop() {
				c.call("session/load", rootsParams(id, dir))
			}
			b.ReportMetric(updates*float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

// Clause P6.
func TestUnknownMembersOfResultAreKept(t *testing.T) {
	c := start(t, acp.Options{Backend: using(&scripted{
		result: `{"sessionId":"theirs","x":{"n":1.0},"modes":{"y":[1e0]}}`})})
	a := folder(t)
	id := c.open(a)
	for _, method := range opening {
		result := string(c.call(method, rootsParams(id, a)))
		require.Contains(t, result, `"x":{"n":1.0},"modes":{"y":[1e0]}`, method)
		require.NotContains(t, result, "theirs", method)
	}
}
