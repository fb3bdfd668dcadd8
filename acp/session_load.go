package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// acceptReopen is the first half of session/load and session/resume.
func (a *agent) acceptReopen(ctx context.Context, r *jsonrpc.Request, cause backend.Cause) jsonrpc.Work {
	id, _, err := takeSession(r.Params)
	if err != nil {
		return failed(err)
	}
	o := &reopening{agent: a, at: a.lanes.enter(id, entryLifecycle), cause: cause, pace: a.options.newPace(ctx)}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		settled := false
		defer func() {
			if !settled { // also after a panic
				o.at.leave()
			}
		}()
		s, result, err := o.run(ctx, r.Params)
		if err != nil {
			return nil, asWire(err)
		}
		a.settle(r, o.at, s)
		settled = true
		return result, nil
	}
}

// reopening is a session/load or session/resume on its way.
type reopening struct {
	agent  *agent
	at     *place
	cause  backend.Cause
	pace   *pace
	params sessionParams

	stored sessionstore.Session
	before *session // the live session, nil if there is none
}

// run activates a stored session. Whatever can fail comes first; then the running turn of the live
// session ends, the new activation takes its place, and a load replays the history (A12).
func (o *reopening) run(ctx context.Context, params json.RawMessage) (*session, json.RawMessage, error) {
	fields, a := resumeFields, o.agent
	if o.cause == backend.Load {
		fields = loadFields
	}
	var err error
	if o.params, err = a.decodeSession(ctx, params, fields); err != nil {
		return nil, nil, err
	}
	if err := o.at.wait(ctx); err != nil {
		return nil, nil, err
	}
	if err := o.find(ctx); err != nil {
		return nil, nil, err
	}
	var (
		s   *session
		act *activation
	)
	replace := func() (err error) {
		s, act, err = o.replace(ctx)
		return err
	}
	if o.before == nil {
		err = a.counted(replace)
	} else {
		err = replace()
	}
	if err != nil {
		return nil, nil, err
	}
	if o.cause == backend.Load {
		// What cannot be shown is not left half open.
		if err := a.replay(context.WithoutCancel(ctx), s, act.opened, o.pace); err != nil {
			a.closeSession(a.base, s)
			return nil, nil, err
		}
	}
	return s, act.opened.Result, nil
}

// find looks up the session, and refuses one that may not be opened so.
func (o *reopening) find(ctx context.Context) (err error) {
	if o.stored, err = o.agent.stored(ctx, o.params.id); err != nil {
		return err
	}
	o.before = o.at.lane.active()
	return o.agent.matchCwd(ctx, o.params.roots.Cwd(), o.stored.Keys)
}

// replace opens a new activation of the session and puts it in the place of the live one.
func (o *reopening) replace(ctx context.Context) (*session, *activation, error) {
	a, in := o.agent, o.at.lane
	stop := sync.OnceValue(func() error { return in.endTurn(ctx, backend.ErrCancelled) })
	ra := backend.Activation{
		Cause: o.cause, State: o.stored.State, History: rawHistory(a.options.Store.History(ctx, o.stored.ID)),
		Stop: func(context.Context) error { return stop() },
	}
	if o.before != nil {
		ra.Previous = o.before.runtime
	}
	var replays *pace
	if o.cause == backend.Load {
		replays = o.pace
	}
	act, err := a.open(ctx, o.stored.ID, o.params, o.before, ra, replays)
	if err != nil {
		return nil, nil, err
	}
	act.title = o.stored.Title
	l, err := o.takeOver(ctx, act)
	if err != nil {
		act.abandon()
		return nil, nil, err
	}
	// From here on it is too late to give up.
	if err := in.endTurn(context.WithoutCancel(ctx), backend.ErrCancelled); err != nil {
		a.log.Warn("ending a turn", "session", o.stored.ID, "error", err)
	}
	if o.before != nil {
		o.before.servers.pass()
	}
	act.servers.commit(act.host)
	if o.before != nil {
		o.before.makeUp(a.base, l)
		o.before.retire(a.base)
	}
	if err := act.host.dropReplayed(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("dropping a replay", "session", o.stored.ID, "error", err)
	}
	s, err := act.commit(in, l)
	return s, act, err
}

// takeOver gives the session its new roots and a new generation. The turn that runs in the live one goes on
// with the new generation, unless it was fenced.
func (o *reopening) takeOver(ctx context.Context, act *activation) (sessionstore.Lease, error) {
	state := act.host.takeState()
	change := sessionstore.Activation{Keys: act.keys(o.stored.Keys.Roots.Cwd()), State: state, StateKey: o.agent.keyOf(state)}
	ctx = context.WithoutCancel(ctx)
	if o.cause == backend.Load && act.opened.Replay == backend.FromBackend {
		var err error
		if change.History, err = act.host.takeReplayed(ctx); err != nil {
			return sessionstore.Lease{}, err
		}
	}
	if o.before == nil {
		return o.agent.options.Store.Activate(ctx, o.stored.ID, change)
	}
	return o.before.takeOver(ctx, change)
}

// retire frees an activation that is not the active one of its lane any more.
func (s *session) retire(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := s.close(ctx); err != nil {
		s.agent.log.Warn("closing an activation", "session", s.id, "error", err)
	}
}

// makeUp records the end of a turn that could not be stored when it was over, with the lease of s's successor.
func (s *session) makeUp(ctx context.Context, l sessionstore.Lease) {
	if !s.open {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := s.agent.options.Store.EndTurn(ctx, l, ""); err != nil {
		s.agent.log.Warn("ending a turn", "session", s.id, "error", err)
	}
}

// stored returns a stored session that this agent may open.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.options.Store.Get(ctx, id)
	if err != nil {
		return s, asWire(err)
	}
	if s.Agent != a.init.owner() {
		return s, strictjson.Refuse(strictjson.NewViolation("sessionId", string(id), strictjson.OtherAgent).Expecting(commandOf(s.Agent)))
	}
	return s, nil
}

// commandOf is a command line that reaches the agent of a session.
func commandOf(owner sessionstore.Agent) string {
	if owner.Kind == "proxy" {
		return "acp-agent -- " + owner.Profile
	}
	return "acp-agent"
}

// matchCwd holds a load's cwd against the session's (A11, A17).
func (a *agent) matchCwd(ctx context.Context, cwd workspace.Dir, stored sessionstore.Keys) error {
	if cwd == stored.Roots.Cwd() {
		return nil
	}
	real, err := onDisk(ctx, a, func() (workspace.Dir, error) { return workspace.Real(cwd), nil }, nil)
	if err != nil {
		return err
	}
	if len(stored.Real) > 0 && real == stored.Real[0] {
		return nil
	}
	return strictjson.Refuse(strictjson.NewViolation("cwd", cwd.String(), strictjson.CwdMismatch).Expecting(stored.Roots.Cwd().String()))
}

// replay shows the client a loaded session's conversation before the response (A27): the stored history,
// unless the runtime has sent its own, then the states as they are now.
func (a *agent) replay(ctx context.Context, s *session, opened backend.Opened, p *pace) error {
	if opened.Replay == backend.FromStore {
		if err := a.replayHistory(ctx, s, p); err != nil {
			return err
		}
	}
	states, err := a.options.Store.States(ctx, s.id)
	if err != nil {
		return asWire(err)
	}
	said := s.host.heldKinds()
	result := members(opened.Result)
	for _, u := range states {
		kind := u.Kind
		if said[kind] || len(result[statedBy(kind)]) > 0 {
			continue
		}
		if err := s.show(ctx, u.Raw); err != nil {
			return err
		}
	}
	return nil
}

// statedBy is the member of a lifecycle response that says what a state kind says.
func statedBy(kind sessionstore.Kind) string {
	switch kind {
	case sessionstore.CurrentModeUpdate:
		return "modes"
	case sessionstore.ConfigOptionUpdate:
		return "configOptions"
	}
	return ""
}

// replayHistory sends the stored history, and closes the tool calls that it leaves open.
func (a *agent) replayHistory(ctx context.Context, s *session, p *pace) error {
	open := openCalls{}
	for u, err := range sessionstore.Joined(a.options.Store.History(ctx, s.id)) {
		if err != nil {
			return asWire(err)
		}
		open.see(u)
		p.wait(ctx)
		if err := s.show(ctx, u.Raw); err != nil {
			return err
		}
	}
	for _, u := range open.failures() {
		p.wait(ctx)
		if err := s.show(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// openCalls are the tool calls of a history that have not ended, by id, in order.
type openCalls struct {
	order []string
	open  map[string]bool
}

// see takes note of an update.
func (o *openCalls) see(u sessionstore.Update) {
	if u.Kind != sessionstore.ToolCall && u.Kind != sessionstore.ToolCallUpdate {
		return
	}
	var call struct {
		Update struct {
			ID     string `json:"toolCallId"`
			Status string `json:"status"`
		} `json:"update"`
	}
	if json.Unmarshal(u.Raw, &call) != nil {
		return
	}
	id, status := call.Update.ID, call.Update.Status
	switch {
	case status == "completed" || status == "failed":
		delete(o.open, id)
	case u.Kind == sessionstore.ToolCall || status != "":
		if o.open == nil {
			o.open = make(map[string]bool)
		}
		if !o.open[id] {
			o.open[id] = true
			o.order = append(o.order, id)
		}
	}
}

// failures are updates that end the open calls (A27).
func (o *openCalls) failures() []json.RawMessage {
	var updates []json.RawMessage
	for _, id := range o.order {
		if o.open[id] {
			delete(o.open, id)
			updates = append(updates, json.RawMessage(`{"update":{"sessionUpdate":"tool_call_update","toolCallId":`+string(quote(id))+`,"status":"failed"}}`))
		}
	}
	return updates
}

// replaying is the history that a runtime shows the client while it opens: stored in segments beside that, to
// replace ours with the commit (P7). However long it is, little of it is in memory.
type replaying struct {
	draft    sessionstore.Draft
	recorder *sessionstore.Recorder
}

// drafting is the store as the recorder of a replay sees it: it appends to the draft.
type drafting struct {
	sessionstore.Store
	draft sessionstore.Draft
}

// Append implements [sessionstore.Store].
func (d drafting) Append(ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update) error {
	return d.draft.Append(ctx, segment)
}

// newReplaying starts a history.
func (a *agent) newReplaying(ctx context.Context, id sessionstore.ID) (*replaying, error) {
	draft, err := a.options.Store.NewDraft(ctx, id)
	if err != nil {
		return nil, err
	}
	r := sessionstore.NewRecorder(drafting{a.options.Store, draft}, sessionstore.Lease{}, a.options.tuning.Recorder)
	return &replaying{draft: draft, recorder: r}, nil
}

// discard drops the history.
func (r *replaying) discard(ctx context.Context) error {
	closed := r.recorder.Close(ctx)
	return errors.Join(closed, r.draft.Discard(ctx))
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	if h.pace == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "a replay outside of a load")
	}
	if err := h.stop(ctx); err != nil {
		return err
	}
	parsed, err := parseUpdate(u)
	if err != nil {
		return err
	}
	h.replays.Lock()
	defer h.replays.Unlock()
	h.mu.Lock()
	opening := h.phase == hostOpening
	h.mu.Unlock()
	if !opening {
		return backend.ErrClosed
	}
	if h.replayed == nil {
		replayed, err := h.agent.newReplaying(ctx, h.id)
		if err != nil {
			return err
		}
		h.replayed = replayed
	}
	h.pace.wait(ctx)
	if err := h.agent.conn.Notify(ctx, methodUpdate, putSession(u, h.id)); err != nil {
		return err
	}
	return h.replayed.recorder.Record(ctx, parsed)
}

// takeReplayed returns what was replayed as the history of the commit, which may be empty. From then on the host
// does not own it.
func (h *host) takeReplayed(ctx context.Context) (sessionstore.Draft, error) {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		var err error
		if h.replayed, err = h.agent.newReplaying(ctx, h.id); err != nil {
			return nil, err
		}
	}
	if err := h.replayed.recorder.Close(ctx); err != nil {
		return nil, err
	}
	return h.replayed.draft, nil
}

// dropReplayed drops what was replayed and not committed. After a commit that is nothing.
func (h *host) dropReplayed(ctx context.Context) error {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		return nil
	}
	dropped := h.replayed
	h.replayed = nil
	return dropped.discard(ctx)
}

const (
	// replayBurst is how many updates of a load go out at once.
	replayBurst = 512
	// replayRate is how many a second follow, if Options say nothing else.
	replayRate = 6_000
	// paceSlack is how far a replay may be ahead of its pace, since timers are coarse, and how much of what
	// it lost it may make up for.
	paceSlack = 2 * time.Millisecond
)

// pace holds a load's replay back to what a client can handle. A pipe pushes back when a client does not read, but
// some read everything and keep what they have not handled: the Go SDK's keeps 1,024 notifications, then closes the
// connection. A pace that was lost, because the client did not read for a while, is not made up for.
type pace struct {
	interval time.Duration // between two updates; 0 for no pace
	request  context.Context

	mu    sync.Mutex
	free  int       // updates that may go at once
	next  time.Time // when the next one is due
	timer *time.Timer
}

// newPace is the pace of a load whose request has the context ctx.
func (o Options) newPace(ctx context.Context) *pace {
	p := &pace{request: ctx, free: replayBurst}
	if o.ReplayRate > 0 {
		p.interval = time.Second / time.Duration(o.ReplayRate)
	}
	return p
}

// wait returns when the next update may go, or ctx ended. A client that has closed its end gets the
// rest at once: it is only given the time to end (W9).
func (p *pace) wait(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interval == 0 {
		return
	}
	if p.free > 0 {
		p.free--
		return
	}
	now := time.Now()
	if lost := now.Add(-paceSlack); p.next.Before(lost) {
		p.next = lost
	}
	due := p.next
	p.next = p.next.Add(p.interval)
	if ahead := due.Sub(now); ahead > paceSlack {
		p.sleep(ctx, ahead)
	}
}

func (p *pace) sleep(ctx context.Context, d time.Duration) {
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	request := p.request.Done()
	for {
		select {
		case <-p.timer.C:
			return
		case <-ctx.Done():
			return
		case <-request:
			request = nil
			if errors.Is(context.Cause(p.request), jsonrpc.ErrClosed) {
				p.interval = 0
				return
			}
		}
	}
}
