package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// commitTimeout bounds the commits that end a turn; they outlive its context.
const commitTimeout = 10 * time.Second

// acceptPrompt is the first half of session/prompt: it takes the prompt's place in the
// order, or refuses it (W7).
func (a *agent) acceptPrompt(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p, err := decodePrompt(r.Params)
	if err != nil {
		return failed(err)
	}
	t := newTurn(ctx)
	at, err := a.lanes.enterPrompt(p.id, t)
	if err != nil {
		t.answered()
		return failed(err)
	}
	r.BeforeResponse(t.decide)
	r.AfterResponse(func() {
		at.lane.forgetTurn(t)
		t.answered()
		at.leave()
	})
	return func() (json.RawMessage, error) { return a.prompt(at, t, p) }
}

// prompt runs a turn. It waits for the head of its lane, stores the prompt, gives the lane up once
// the runtime has it, and returns when all of the turn is durable.
func (a *agent) prompt(at *place, t *turn, p promptParams) (json.RawMessage, error) {
	if err := a.initialized(t.ctx); err != nil {
		return nil, err
	}
	if err := at.wait(t.ctx); err != nil {
		return nil, err
	}
	s, err := a.beginTurn(at.lane, t, p)
	if err != nil {
		return nil, asWire(err)
	}
	updates := &turnUpdates{session: s}
	o := outcome{err: errNeverStarted}
	defer func() { s.commitTurn(t, o) }() // a panic leaves no turn open
	s.host.refresh(t.ctx)
	o = t.await(a, func() (backend.Raw, error) {
		defer at.leave() // also after a panic
		work := t.handOver(s, p.rest, updates)
		at.leave()
		if work == nil {
			return nil, errNeverStarted
		}
		return work()
	})
	t.over()
	updates.end()
	return s.answer(t, &o)
}

// errNeverStarted stands for the outcome of a turn that the runtime did not get or did not finish.
var errNeverStarted = errors.New("the turn did not run")

// beginTurn makes t the lane's running turn and stores its start.
func (a *agent) beginTurn(l *lane, t *turn, p promptParams) (*session, error) {
	if before := l.running(); before != nil {
		if before.inTheWay() {
			return nil, errTurnInProgress(l.id)
		}
		if err := before.wait(t.ctx); err != nil {
			return nil, err
		}
	}
	s := l.active()
	if s == nil {
		return nil, a.whyInactive(t.ctx, l.id)
	}
	if err := s.begin(t.ctx, p); err != nil {
		return nil, err
	}
	l.setRunning(t)
	return s, nil
}

// whyInactive tells a stored session that nobody opened here from one that does not exist (A28).
func (a *agent) whyInactive(ctx context.Context, id sessionstore.ID) error {
	if _, err := a.options.Store.Get(ctx, id); err != nil {
		return asWire(err)
	}
	return errNotActive(id)
}

// begin durably records the start of a turn before the runtime acts (S8), and shows the title
// that the session's first prompt gives it (A29).
func (s *session) begin(ctx context.Context, p promptParams) error {
	s.record.renew(ctx)
	if err := s.record.recorder().Flush(ctx); err != nil {
		return err
	}
	title := ""
	if !s.titled.Load() {
		title = p.title()
	}
	err := s.write(func(l sessionstore.Lease) error {
		return s.agent.options.Store.BeginTurn(ctx, l, sessionstore.Turn{Prompt: p.updates(), Title: title})
	})
	if err != nil {
		s.failed(err)
		return err
	}
	if title == "" {
		return nil
	}
	s.titled.Store(true)
	if err := s.show(ctx, titleUpdate(title)); err != nil {
		s.agent.log.Debug("title not shown", "session", s.id, "error", err) // the turn has begun, and ends like any other
	}
	return nil
}

// answer commits what the turn said and makes the response of it.
func (s *session) answer(t *turn, o *outcome) (json.RawMessage, error) {
	if o.err == nil {
		o.result, o.err = withStopReason(o.result)
	}
	if t.isCancelled() {
		*o = outcome{result: cancelledResult(o.result)}
	} else if cause := t.cause(); cause != nil {
		o.err = cause
	}
	if err := s.commitTurn(t, *o); err != nil && o.err == nil && !t.isCancelled() {
		o.err = err // which may have ended the turn meanwhile, so its cause tells nothing
	}
	return o.result, asWire(o.err)
}

// commitTurn records the end of t once.
func (s *session) commitTurn(t *turn, o outcome) error {
	if !t.commit() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), commitTimeout)
	defer cancel()
	err := s.record.recorder().Flush(ctx)
	if err == nil {
		err = s.write(func(l sessionstore.Lease) error {
			return s.agent.options.Store.EndTurn(ctx, l, stopReason(o))
		})
	}
	if err != nil {
		s.open = true
		s.failed(err)
	}
	return err
}

// decide makes the response of a turn that has ended, or did not begin: that of a cancelled one, if it was cancelled
// before its response is written (W5).
func (t *turn) decide(result json.RawMessage, err error) (json.RawMessage, error) {
	if t.settle() {
		return cancelledResult(result), nil
	}
	return result, err
}

// cancelledResult is result with the stop reason of a cancelled turn.
func cancelledResult(result json.RawMessage) json.RawMessage {
	if len(result) == 0 {
		return json.RawMessage(`{"stopReason":"cancelled"}`)
	}
	return put(result, "stopReason", json.RawMessage(`"cancelled"`))
}

// withStopReason refuses a runtime's result that is not a prompt response.
func withStopReason(result backend.Raw) (backend.Raw, error) {
	if reason := stopReason(outcome{result: result}); reason == "" {
		return nil, fmt.Errorf("the agent answered the prompt without a stop reason")
	}
	return result, nil
}

// stopReason is the stop reason in an outcome, "" if it is an error.
func stopReason(o outcome) sessionstore.StopReason {
	if o.err != nil {
		return ""
	}
	object, err := strictjson.ParseObject(o.result)
	if err != nil {
		return ""
	}
	raw, _ := object.Get("stopReason")
	var reason sessionstore.StopReason
	if json.Unmarshal(raw, &reason) != nil {
		return ""
	}
	return reason
}

// turn is one prompt, from its arrival to its answer.
type turn struct {
	request context.Context // the request's own
	ctx     context.Context
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when the prompt was answered
	finish  sync.Once

	mu        sync.Mutex // not held while the runtime is called: a turn can be ended whatever its runtime does
	stage     turnStage
	with      *session    // whose runtime has the prompt
	ended     bool        // told to end early
	params    backend.Raw // of the session/cancel that ended it
	committed bool        // its end was recorded, or is being
	settled   bool        // its answer is decided
}

type turnStage int

const (
	turnWaiting turnStage = iota // not yet handed to the runtime
	turnHanding                  // it is being handed over
	turnRunning                  // the runtime has it
	turnOver                     // the runtime is done with it, or was given up
)

// newTurn returns a turn of the request with context ctx, whose end ends the turn as a
// cancelled one: the client gave up on the request (W6) or left (W9).
func newTurn(ctx context.Context) *turn {
	t := &turn{request: ctx, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { t.end(backend.ErrCancelled, nil) })
	return t
}

// end ends the turn early, for cause, and tells the runtime once. params are those of the
// client's session/cancel, if that is why.
func (t *turn) end(cause error, params backend.Raw) {
	if !t.ends(cause, params) {
		return
	}
	t.with.inOrder(func() {
		if t.isAt(turnRunning) {
			t.with.tellCancelled(params)
		}
	})
}

// ends notes that the turn ends early. It reports whether the runtime has the turn and is to be told.
func (t *turn) ends(cause error, params backend.Raw) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.settled {
		return false
	}
	t.ended, t.params = true, params
	t.stop(cause)
	return t.stage == turnRunning
}

// handOver gives the prompt to s's runtime, and then tells it of the end if that came meanwhile. It returns nil if the
// turn has ended before.
func (t *turn) handOver(s *session, params backend.Raw, u backend.Updates) (work backend.Work) {
	if !t.hand(s) {
		return nil
	}
	s.inOrder(func() {
		work = s.runtime.Prompt(t.ctx, params, u)
		if t.handed() {
			s.tellCancelled(t.params)
		}
	})
	return work
}

// hand begins to hand the turn over. It reports whether it has not ended before.
func (t *turn) hand(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.stage, t.with = turnHanding, s
	return true
}

// handed says that the runtime has the turn. It reports whether that has ended meanwhile.
func (t *turn) handed() (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == turnHanding {
		t.stage = turnRunning
	}
	return t.ended
}

func (t *turn) isAt(stage turnStage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage == stage
}

// runsIn reports whether s's runtime was given the turn. A lane's next turn may be another session's.
func (t *turn) runsIn(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.with == s
}

// over marks the runtime as done with the turn. If it is being told of the end, it knows when over returns.
func (t *turn) over() {
	if t.isAt(turnRunning) {
		t.with.inOrder(t.setOver)
	} else {
		t.setOver()
	}
}

func (t *turn) setOver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = turnOver
}

// settle decides the turn's answer: what comes later does not change it. It reports whether the turn was
// cancelled for the client.
func (t *turn) settle() (cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = true
	return t.isCancelled()
}

// inTheWay reports whether nothing has told the turn to end, and nothing has ended it, so
// that another prompt is one too many.
func (t *turn) inTheWay() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && !t.settled
}

// commit reports whether the turn's end is still to be recorded, true once.
func (t *turn) commit() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.committed
	t.committed = true
	return first
}

// cause is why the turn ended early, nil if it did not.
func (t *turn) cause() error { return context.Cause(t.ctx) }

// isCancelled reports whether the turn was cancelled for the client.
func (t *turn) isCancelled() bool { return errors.Is(t.cause(), backend.ErrCancelled) }

// answered marks the prompt as answered and frees the turn.
func (t *turn) answered() {
	t.finish.Do(func() {
		t.settle()
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

// outcome is what a runtime's Work returned.
type outcome struct {
	result backend.Raw
	err    error
}

// leaveGrace is how long a turn may take to end when the client has left: its prompt is still answered,
// within the time that the program has to end (W9).
const leaveGrace = time.Second

// await runs work and waits for it; once the turn has ended early for at most its grace more. What a work
// returns after that is dropped.
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
	late := time.NewTimer(a.options.tuning.CancelGrace)
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
				late.Reset(min(a.options.tuning.CancelGrace, leaveGrace))
			}
		}
	}
}

// turnUpdates is what a runtime is given for one turn.
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
	return u.session.update(ctx, update)
}

// end waits for the updates that are being sent and refuses later ones.
func (u *turnUpdates) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
}

// promptParams are the params of session/prompt.
type promptParams struct {
	id     sessionstore.ID
	blocks []json.RawMessage
	rest   backend.Raw // without sessionId
}

func decodePrompt(params json.RawMessage) (promptParams, error) {
	object, wrong := readParams(params, promptShape)
	if len(wrong) > 0 {
		return promptParams{}, strictjson.Refuse(wrong...)
	}
	id, wrong := object.Field("sessionId").Text()
	blocks, bad := object.Field("prompt").Items()
	wrong = append(wrong, bad...)
	p := promptParams{id: sessionstore.ID(id)}
	for _, block := range blocks {
		if len(wrong) >= strictjson.MaxViolations {
			break
		}
		p.blocks = append(p.blocks, block.Raw())
		wrong = append(wrong, checkBlock(block)...)
	}
	if len(wrong) > 0 {
		return promptParams{}, strictjson.Refuse(wrong...)
	}
	var err error
	_, p.rest, err = takeSession(params)
	return p, err
}

// checkBlock refuses a prompt entry that is no content block.
func checkBlock(block strictjson.Field) []strictjson.Violation {
	object, wrong := block.Object()
	if wrong != nil {
		return wrong
	}
	kind, wrong := object.Field("type").Text()
	if kind == "text" {
		_, wrong = object.Field("text").Text()
	}
	return wrong
}

// updates are the prompt as the history keeps it.
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

// maxTitle bounds a title, in characters.
const maxTitle = 80

// title is the first line of the prompt's text, bounded (A29).
func (p promptParams) title() string {
	for _, block := range p.blocks {
		var text struct{ Type, Text string }
		if json.Unmarshal(block, &text) != nil || text.Type != "text" {
			continue
		}
		for line := range strings.Lines(text.Text) {
			if title := cutTitle(line); title != "" {
				return title
			}
		}
	}
	return ""
}

// cutTitle makes one bounded line of s.
func cutTitle(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	runes := []rune(s)
	if len(runes) > maxTitle {
		return strings.TrimSpace(string(runes[:maxTitle-1])) + "…"
	}
	return s
}
