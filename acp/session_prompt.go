package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// commitTimeout limits the writes that end a turn. They outlive its context.
	commitTimeout = 10 * time.Second
	// leaveGrace is how long a turn may take to end once the client has left. Its prompt is
	// answered before the program ends.
	leaveGrace = time.Second
	// maxTitle is the length of the longest title, in characters.
	maxTitle = 80
	// maxTurns is how many prompts of a session may be unanswered, unless the backend handles
	// overlapping turns: one that runs and one that waits for it.
	maxTurns = 2
)

// acceptPrompt serves session/prompt. On the read loop it takes the prompt's place in the queue, or
// rejects the prompt.
func (a *agent) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p, err := decodePrompt(r.Params)
	if err != nil {
		return failed(err)
	}
	t := newTurn(ctx)
	at, err := a.queues.promptTicket(p.id, t, a.turnLimit())
	if err != nil {
		t.answered()
		return failed(err)
	}
	r.BeforeResponse(t.decide)
	r.AfterResponse(func() {
		at.queue.answered(t)
		t.answered()
		at.release()
	})
	return func() (json.RawMessage, error) { return a.prompt(at, t, p) }
}

// turnLimit returns how many turns of a session may be unanswered, 0 for any number.
func (a *agent) turnLimit() int {
	if a.init.overlappingTurns() {
		return 0
	}
	return maxTurns
}

// promptParams are the params of session/prompt.
type promptParams struct {
	id     sessionstore.ID
	blocks []json.RawMessage
	rest   backend.Raw // the params without sessionId
}

func decodePrompt(raw json.RawMessage) (promptParams, error) {
	params := parseParams(raw, promptShape)
	if params.err != nil {
		return promptParams{}, params.err
	}
	var v strictjson.Violations
	p := promptParams{id: sessionstore.ID(v.Text(params.Field(protocol.SessionID))), rest: params.Without(protocol.SessionID)}
	for _, block := range v.Items(params.Field("prompt")) {
		if v.Full() {
			break
		}
		p.blocks = append(p.blocks, block.Raw())
		if object, ok := v.Object(block); ok && v.Text(object.Field("type")) == "text" {
			v.Text(object.Field("text"))
		}
	}
	return p, v.Err()
}

// updates returns the prompt as it is stored in the history.
func (p promptParams) updates() []sessionstore.Update {
	updates := make([]sessionstore.Update, len(p.blocks))
	for i, block := range p.blocks {
		updates[i] = sessionstore.Update{
			Kind: sessionstore.UserMessageChunk,
			Raw:  json.RawMessage(`{"update":{"sessionUpdate":"user_message_chunk","content":` + string(block) + `}}`),
		}
	}
	return updates
}

// title returns the first line that the user typed, "" if that is a call of /roots.
func (p promptParams) title() string {
	if _, ok := parseRootsCall(p.rest); ok {
		return ""
	}
	typed, _ := prompts.Typed(p.rest)
	for _, block := range typed {
		for line := range strings.Lines(block.Text) {
			if title := titleLine(line); title != "" {
				return title
			}
		}
	}
	return ""
}

// titleLine returns s as a title: one line of limited length.
func titleLine(s string) string { return text.Line(s, maxTitle) }

// prompt runs a turn. It stores the prompt when its turn has come, releases the queue when the
// backend has the prompt, and returns when everything said in the turn is stored.
func (a *agent) prompt(at *ticket, t *turn, p promptParams) (json.RawMessage, error) {
	if err := a.initialized(t.ctx); err != nil {
		return nil, err
	}
	if err := at.acquire(t.ctx); err != nil {
		return nil, err
	}
	s, err := a.beginTurn(at, t, p)
	if err != nil {
		return nil, protocolError(err)
	}
	updates := &turnUpdates{session: s}
	o := outcome{err: errNotRun}
	defer func() { s.endTurn(t, o) }() // also after a panic
	s.host.refresh(t.ctx)
	s.showNotice(t.ctx)
	o = t.await(a, func() (backend.Raw, error) {
		defer at.release() // also after a panic
		if call, ok := parseRootsCall(p.rest); ok {
			at.release()
			return a.answerRoots(t, updates, call)
		}
		work := t.start(s, p.rest, updates)
		at.release()
		if work == nil {
			return nil, errNotRun
		}
		return work()
	})
	t.over()
	s = updates.end()
	return s.answer(t, &o)
}

// errNotRun is the outcome of a turn that has ended before the backend got it.
var errNotRun = errors.New("the turn did not run")

// beginTurn stores the start of t when its turn has come. A backend without overlapping turns gets
// a prompt when those before it were answered; requests behind it need not wait for that. Any
// backend gets it after the response of a turn that is ending.
func (a *agent) beginTurn(at *ticket, t *turn, p promptParams) (*session, error) {
	q := at.queue
	overlaps := false
	_, changesRoots := parseRootsCall(p.rest)
	t.exclusive = changesRoots || !a.init.overlappingTurns()
	turns := q.enter(t)
	if !fits(turns, a.turnLimit()) { // a lifecycle request between them and t has failed, and ended none of them
		return nil, errTurnInProgress(q.id)
	}
	for _, before := range turns {
		if before.blocks() {
			if !t.exclusive && !before.exclusive {
				overlaps = true
				continue
			}
			t.exclusive = true // those behind it must not overtake it
			at.release()
		}
		if err := before.wait(t.ctx); err != nil {
			return nil, err
		}
		if t.request.Err() != nil { // the client has left, which ended both, but t may not know yet
			t.end(backend.ErrCancelled)
			return nil, t.cause()
		}
	}
	s := q.active()
	if s == nil {
		return nil, a.whyInactive(t.ctx, q.id)
	}
	return s, s.begin(t, p, overlaps)
}

// begin stores the start of a turn before the backend acts, and shows the client the title that a
// session gets from its first prompt. overlaps says that other turns are running.
func (s *session) begin(t *turn, p promptParams, overlaps bool) error {
	ctx := t.ctx
	s.record.restart(ctx)
	// An update that the client has seen may not be recorded yet. It comes before the prompt in the
	// history too.
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	s.endUpdate()
	if err := s.record.current().Flush(ctx); err != nil {
		return err
	}
	title := ""
	if !s.titled.Load() {
		title = p.title()
	}
	err := s.write(func(l sessionstore.Lease) (err error) {
		t.number, err = s.agent.options.Store.BeginTurn(ctx, l, sessionstore.Turn{Prompt: p.updates(), Title: title, Overlaps: overlaps})
		return err
	})
	if err != nil {
		s.failed(err)
		return err
	}
	if title == "" {
		return nil
	}
	s.titled.Store(true)
	update := backend.NewUpdate(sdk.SessionUpdate{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &title}})
	if err := s.show(ctx, update); err != nil {
		s.agent.log.Debug("title not shown", "session", s.id, "error", err) // the turn has begun, and ends like any other
	}
	return nil
}

// answer stores what was said in the turn and returns the response. A turn that the agent completed
// keeps its result even if another process has opened or deleted the session meanwhile.
func (s *session) answer(t *turn, o *outcome) (json.RawMessage, error) {
	if o.err == nil && stopReason(*o) == "" {
		*o = outcome{err: errors.New("the agent answered the prompt without a stop reason")}
	}
	completed := o.err == nil && stopReason(*o) != stopCancelled
	if t.isCancelled() {
		*o = outcome{result: cancelledResult(o.result)}
	} else if cause := t.cause(); cause != nil && !(completed && gone(cause)) {
		o.err = cause
	}
	err := s.endTurn(t, *o)
	if err != nil && o.err == nil && !t.isCancelled() && !(completed && gone(err)) {
		o.err = err // it may also have ended the turn, so the turn's cause says nothing
	}
	return o.result, protocolError(o.err)
}

// endTurn stores the end of t, once.
func (s *session) endTurn(t *turn, o outcome) error {
	if !t.beginCommit() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	err := s.record.current().Flush(ctx)
	if err == nil {
		err = s.write(func(l sessionstore.Lease) error {
			return s.agent.options.Store.EndTurn(ctx, l, t.number, stopReason(o))
		})
	}
	if err != nil {
		s.addUnended(t.number)
		s.failed(err)
	}
	return err
}

// cancelledResult returns result with the stop reason of a cancelled turn.
func cancelledResult(result json.RawMessage) json.RawMessage {
	return strictjson.Set(result, "stopReason", quote(string(stopCancelled)))
}

// stopCancelled is the stop reason of a cancelled turn.
const stopCancelled sessionstore.StopReason = "cancelled"

// outcome holds the results of a backend's Work.
type outcome struct {
	result backend.Raw
	err    error
}

// stopReason returns the stop reason of a prompt, "" if it failed or its result has none.
func stopReason(o outcome) sessionstore.StopReason {
	if o.err != nil {
		return ""
	}
	var reason sessionstore.StopReason
	if json.Unmarshal(members(o.result)["stopReason"], &reason) != nil {
		return ""
	}
	return reason
}

// turn is a prompt from its arrival to its response.
type turn struct {
	request context.Context // of the request
	ctx     context.Context // ends when the turn ends early
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when the prompt was answered
	finish  sync.Once
	number  int64 // in the store

	exclusive bool // no other turn overlaps it; set before its ticket is released

	mu        sync.Mutex // not held while the backend is called, so that a turn can be ended whatever the backend does
	stage     turnStage
	session   *session    // whose backend has the prompt
	ended     bool        // it was told to end early
	params    backend.Raw // of the session/cancel that ended it
	committed bool        // its end was stored or is being stored
	decided   bool        // its response is decided
}

type turnStage int

const (
	turnWaiting  turnStage = iota
	turnStarting           // the backend's Prompt is being called
	turnRunning            // the backend has the prompt
	turnOver               // the backend is done with it or is no longer waited for
)

// newTurn returns a turn of the request with the context ctx. If ctx ends, the turn ends as
// cancelled: the client cancelled the request or left.
func newTurn(ctx context.Context) *turn {
	t := &turn{request: ctx, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { t.end(backend.ErrCancelled) })
	return t
}

// end ends the turn early and tells the backend, once.
func (t *turn) end(cause error) { endTurns([]*turn{t}, cause, nil) }

// endTurns ends turns of a session early and tells the backend, once for all of them. It begins
// with the last of them, since the end of a turn lets the next one run. params are those of the
// client's session/cancel, if there was one.
func endTurns(turns []*turn, cause error, params backend.Raw) {
	var running []*turn // those that the backend has
	for _, t := range slices.Backward(turns) {
		if t.markEnded(cause, params) {
			running = append(running, t)
		}
	}
	if len(running) == 0 {
		return
	}
	s := running[0].session
	s.callBackend(func() {
		if slices.ContainsFunc(running, func(t *turn) bool { return t.isAt(turnRunning) }) {
			s.cancelBackend(params)
		}
	})
}

// markEnded notes that the turn ends early. It reports whether the backend has the prompt and has
// to be told.
func (t *turn) markEnded(cause error, params backend.Raw) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.decided {
		return false
	}
	t.ended, t.params = true, params
	t.stop(cause)
	return t.stage == turnRunning
}

// start gives s's backend the prompt, and tells it at once if the turn has ended meanwhile. It
// returns nil if the turn had already ended.
func (t *turn) start(s *session, params backend.Raw, u backend.Updates) (work backend.Work) {
	if !t.markStarting(s) {
		return nil
	}
	s.callBackend(func() {
		work = s.backend.Prompt(t.ctx, params, u)
		if t.markRunning() {
			s.cancelBackend(t.params)
		}
	})
	return work
}

// markStarting reports whether the turn may start in s: it has not ended.
func (t *turn) markStarting(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.stage, t.session = turnStarting, s
	return true
}

// markRunning notes that the backend has the prompt. It reports whether the turn has ended
// meanwhile.
func (t *turn) markRunning() (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == turnStarting {
		t.stage = turnRunning
	}
	return t.ended
}

func (t *turn) isAt(stage turnStage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == stage
}

// runsIn reports whether s's backend was given the prompt.
func (t *turn) runsIn(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session == s
}

// over notes that the backend is done with the turn. If the backend is being told of the turn's
// end, over waits for that.
func (t *turn) over() {
	setOver := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stage = turnOver
	}
	if t.isAt(turnRunning) {
		t.session.callBackend(setOver)
	} else {
		setOver()
	}
}

// decide decides the response just before it is written: a turn that was cancelled until then is
// answered as cancelled.
func (t *turn) decide(result json.RawMessage, err error) (json.RawMessage, error) {
	if t.markDecided() {
		return cancelledResult(result), nil
	}
	return result, err
}

// markDecided notes that nothing changes the turn's response any more. It reports whether the turn
// was cancelled.
func (t *turn) markDecided() (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decided = true
	return t.isCancelled()
}

// blocks reports whether the turn is neither over nor ending: a new prompt has to be queued, or
// overlaps it.
func (t *turn) blocks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && !t.decided
}

// beginCommit reports whether the turn's end is still to be stored. It is true once.
func (t *turn) beginCommit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.committed
	t.committed = true
	return first
}

// cause returns why the turn ended early, nil if it did not.
func (t *turn) cause() error { return context.Cause(t.ctx) }

// isCancelled reports whether the turn was ended on behalf of the client.
func (t *turn) isCancelled() bool { return errors.Is(t.cause(), backend.ErrCancelled) }

// answered notes that the prompt was answered.
func (t *turn) answered() {
	t.finish.Do(func() {
		t.markDecided()
		t.stop(backend.ErrTurnOver)
		close(t.done)
	})
}

// wait waits until the prompt was answered.
func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await runs work and returns its outcome. After the turn has ended early it waits only for the
// grace, and what work returns later is dropped.
func (t *turn) await(a *agent, work backend.Work) outcome {
	returned := make(chan outcome, 1)
	a.running.Go(func() {
		var o outcome
		defer func() { returned <- o }()
		o.err = a.guard("prompt", func() (err error) {
			o.result, err = work()
			return err
		})
	})
	select {
	case o := <-returned:
		return o
	case <-t.ctx.Done():
	}
	grace := a.options.tuning.CancelGrace
	late := time.NewTimer(grace)
	defer late.Stop()
	requestEnd := t.request.Done()
	for {
		select {
		case o := <-returned:
			return o
		case <-late.C:
			return outcome{err: t.cause()}
		case <-requestEnd:
			requestEnd = nil
			if errors.Is(context.Cause(t.request), jsonrpc.ErrClosed) {
				late.Reset(min(grace, leaveGrace))
			}
		}
	}
}

// turnUpdates implements [backend.Updates] for one turn.
type turnUpdates struct {
	session *session

	mu   sync.RWMutex
	over bool
}

// Update implements [backend.Updates].
func (u *turnUpdates) Update(ctx context.Context, update backend.Update) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if u.over {
		return backend.ErrTurnOver
	}
	return u.session.update(ctx, announceRoots(update))
}

// moveTo sends later updates to s, which has replaced the turn's session.
func (u *turnUpdates) moveTo(s *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.session = s
}

// end waits for updates that are being sent and rejects later ones. It returns the turn's session.
func (u *turnUpdates) end() *session {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	return u.session
}
