package acp

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// A session of a remote client is run by the agent of the connection that opened it. If another
// connection of the same principal loads the session, it joins: its client becomes a viewer, and
// its agent passes the session's requests on to the agent that runs it.

// sessionOf returns the id of the session that must be open for the request, or "".
func sessionOf(r *jsonrpc.Request) (id sessionstore.ID) {
	if r.Method == protocol.SessionFork {
		return ""
	}
	_ = json.Unmarshal(strictjson.Find(r.Params, protocol.SessionID), &id)
	if of, _, ok := splitChild(id); ok {
		return of
	}
	return id
}

// opens reports whether a method opens a stored session.
func opens(method string) bool {
	return method == protocol.SessionLoad || method == protocol.SessionResume
}

// removes reports whether a method removes a session, for all who have it open.
func removes(method string) bool {
	return method == protocol.SessionDelete || method == protocol.SessionArchive
}

// concerns reports whether a method is about a session wherever that is open, so that a client need
// not have loaded it.
func concerns(method string) bool {
	return method == protocol.SessionStatus || method == protocol.SessionSetTitle
}

// routes says where the requests about sessions go that other agents run. A load of a session that
// others have open does not hold the session's queue, so that they need not wait for it. Only later
// requests of the same client do.
type routes struct {
	mu      sync.Mutex
	runs    map[sessionstore.ID]*agent        // who runs the session
	loading map[sessionstore.ID]chan struct{} // closed when the last load was answered
}

// acceptLasting accepts a request about a session that another agent runs, or that other clients
// have open. ok is false if neither is the case. It is called on the read loop.
func (a *agent) acceptLasting(ctx context.Context, r *jsonrpc.Request) (_ jsonrpc.Work, ok bool) {
	id := sessionOf(r)
	if id == "" || !a.init.done() {
		return nil, false
	}
	before, done := a.routes.enqueue(id)
	if before == nil {
		return a.route(ctx, r, id, nil)
	}
	return func() (json.RawMessage, error) {
		select {
		case <-before:
		case <-ctx.Done():
			done()
			return nil, context.Cause(ctx)
		}
		work, ok := a.route(ctx, r, id, done)
		if !ok {
			work = a.accept(ctx, r, a)
		}
		if !opens(r.Method) {
			done()
		}
		if work == nil && r.IsNotification() {
			return nil, nil
		}
		return run(work, r.Method)
	}, true
}

// enqueue returns what a request about a session waits for, nil if it need not wait. Otherwise
// later requests wait until done is called.
func (t *routes) enqueue(id sessionstore.ID) (before <-chan struct{}, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.loading[id]
	if before == nil {
		return nil, nil
	}
	return before, t.beginLocked(id)
}

// begin makes later requests about a session wait until done is called.
func (t *routes) begin(id sessionstore.ID) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.beginLocked(id)
}

func (t *routes) beginLocked(id sessionstore.ID) (done func()) {
	loaded := make(chan struct{})
	if t.loading == nil {
		t.loading = make(map[sessionstore.ID]chan struct{})
	}
	t.loading[id] = loaded
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		close(loaded)
		if t.loading[id] == loaded {
			delete(t.loading, id)
		}
	})
}

// route accepts a request as acceptLasting does, once earlier ones need not be waited for. If it is
// a load for which later requests wait, loaded ends that.
func (a *agent) route(
	ctx context.Context, r *jsonrpc.Request, id sessionstore.ID, loaded func(),
) (_ jsonrpc.Work, ok bool) {
	switch {
	case opens(r.Method) && !r.IsNotification():
		return a.routeLoad(ctx, r, id, loaded), true
	case concerns(r.Method) && !r.IsNotification():
		h := a.owner.runner(id, a)
		r.AfterResponse(func() { a.owner.unuse(h) })
		return h.accept(ctx, r, a), true
	case removes(r.Method) && a.owner.hasOthers(id, a):
		return reject(r, errOpenElsewhere(id, nil)), true
	}
	if h := a.elsewhere(id); h != nil {
		return a.forward(ctx, h, id, r), true
	}
	if a.isTaken(id, a) {
		return reject(r, errNotActive(id)), true
	}
	return nil, false
}

// routeLoad accepts a load or resume. It goes to the agent that runs the session or is opening it.
func (a *agent) routeLoad(
	ctx context.Context, r *jsonrpc.Request, id sessionstore.ID, loaded func(),
) jsonrpc.Work {
	h := a.owner.beginOpening(id, a)
	r.AfterResponse(func() { a.owner.endOpening(id, h) })
	if h != a {
		a.routes.set(id, h)
	}
	s := h.activeSession(id)
	isShared := h != a || s != nil && s.host.viewers.Others(a) > 0
	if loaded == nil && isShared {
		loaded = a.routes.begin(id)
	}
	work := h.accept(ctx, r, a)
	return func() (json.RawMessage, error) {
		if loaded != nil {
			defer r.AfterResponse(loaded) // after what the load adds
		}
		return run(work, r.Method)
	}
}

func (t *routes) set(id sessionstore.ID, h *agent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs == nil {
		t.runs = make(map[sessionstore.ID]*agent)
	}
	t.runs[id] = h
}

// elsewhere returns the other agent that runs a session which a's client has loaded, or nil. The
// caller ends its use.
func (a *agent) elsewhere(id sessionstore.ID) *agent {
	a.routes.mu.Lock()
	defer a.routes.mu.Unlock()
	h := a.routes.runs[id]
	if h == nil {
		return nil
	}
	if h != a && h.queues.Find(id) != nil && a.owner.use(h) {
		return h
	}
	delete(a.routes.runs, id)
	return nil
}

// forward passes a request from a's client to h. The caller has begun a use of h, which forward
// ends.
func (a *agent) forward(
	ctx context.Context, h *agent, id sessionstore.ID, r *jsonrpc.Request,
) jsonrpc.Work {
	var work jsonrpc.Work
	if h.isTaken(id, a) {
		work = reject(r, errNotActive(id))
	} else {
		work = h.accept(ctx, r, a)
	}
	done := func() { a.owner.unuse(h) }
	switch {
	case !r.IsNotification():
		r.AfterResponse(done)
		return work
	case work == nil:
		done()
		return nil
	}
	return func() (json.RawMessage, error) {
		defer done()
		return work()
	}
}

// reject rejects a request, and ignores a notification.
func reject(r *jsonrpc.Request, err error) jsonrpc.Work {
	if r.IsNotification() {
		return func() (json.RawMessage, error) { return nil, nil }
	}
	return jsonrpc.Fail(err)
}

// activeSession returns the active session with the given id, or nil.
func (a *agent) activeSession(id sessionstore.ID) *session {
	if q := a.queues.Find(id); q != nil {
		return q.Active()
	}
	return nil
}

// isTaken reports whether the session is open, but not in from's client, which must load it before
// it sends other requests.
func (a *agent) isTaken(id sessionstore.ID, from *agent) bool {
	s := a.activeSession(id)
	return s != nil && !s.host.viewers.Has(from)
}

// openings are the loads of a principal that were not answered.
type openings struct {
	mu   sync.Mutex
	byID map[sessionstore.ID]*opener
}

// opener is the agent that opens a session.
type opener struct {
	agent *agent
	loads int
}

// beginOpening returns the agent to which a load of a goes: the one that runs the session or is
// opening it, or a. It stays used until endOpening.
func (p *principal) beginOpening(id sessionstore.ID, a *agent) *agent {
	p.openings.mu.Lock()
	defer p.openings.mu.Unlock()
	o := p.openings.byID[id]
	if o == nil || !o.agent.serves(a) || !p.use(o.agent) {
		o = &opener{agent: p.runner(id, a)}
		if p.openings.byID == nil {
			p.openings.byID = make(map[sessionstore.ID]*opener)
		}
		p.openings.byID[id] = o
	}
	o.loads++
	return o.agent
}

// runner returns the agent that runs a session and that a may use, or a, and begins a use of it.
func (p *principal) runner(id sessionstore.ID, a *agent) *agent {
	if a.activeSession(id) == nil {
		for _, h := range p.all() {
			if h != a && h.serves(a) && h.activeSession(id) != nil && p.use(h) {
				return h
			}
		}
	}
	p.use(a)
	return a
}

// serves reports whether a may run sessions for the client of another agent of its principal.
func (a *agent) serves(other *agent) bool {
	return a == other || a.lasting() && a.init.done() && a.init.owner() == other.init.owner()
}

// endOpening ends a load.
func (p *principal) endOpening(id sessionstore.ID, h *agent) {
	p.openings.mu.Lock()
	if o := p.openings.byID[id]; o != nil && o.agent == h {
		if o.loads--; o.loads == 0 {
			delete(p.openings.byID, id)
		}
	}
	p.openings.mu.Unlock()
	p.unuse(h)
}

// hasOthers reports whether other clients than a's have the session open.
func (p *principal) hasOthers(id sessionstore.ID, a *agent) bool {
	return slices.ContainsFunc(p.all(), func(h *agent) bool {
		s := h.activeSession(id)
		return s != nil && h.lasting() && s.host.viewers.Others(a) > 0
	})
}

// joins reports whether the load makes its client another viewer of the session that is open. It
// does if others have the session open, or if a turn goes on without a client. A list of other
// roots opens the session again: for all if no turn runs, and not at all otherwise.
func (l *load) joins() (bool, error) {
	s := l.previous
	if s == nil || l.front == nil || !l.agent.lasting() {
		return false, nil
	}
	others := s.host.viewers.Others(l.front) > 0
	running := l.at.Queue.Runs()
	isTurnOfNobody := running && !s.host.viewers.Has(l.front)
	if !others && !isTurnOfNobody {
		return false, nil
	}
	same := !l.params.listed || l.rootsIn(s).Equal(s.params.roots)
	if !same && others && running {
		return false, errOpenElsewhere(s.id, &s.params.roots)
	}
	return same || others, nil
}

// rootsIn returns the roots that the load asks for, with the cwd as s has it.
func (l *load) rootsIn(s *session) workspace.Roots {
	return workspace.RootsFrom(s.params.roots.Cwd(), l.params.roots.Additional())
}

// join makes the client a viewer, and shows it the history of the session up to now. Others need
// not wait for that: the ticket is released first, and updates that come meanwhile are kept.
func (l *load) join(ctx context.Context) (_ *session, _ json.RawMessage, err error) {
	if l.params.listed && !l.rootsIn(l.previous).Equal(l.previous.params.roots) {
		if err := l.reopenForAll(ctx); err != nil {
			return nil, nil, err
		}
	}
	a, v := l.agent, l.previous.host.viewers
	if !v.Enter(l.front) {
		return nil, nil, backend.ErrClosed
	}
	defer func() {
		if err != nil {
			a.keep(l.previous, v.Leave(l.front), l.front.graceNow())
		}
	}()
	l.at.Release()
	shown, err := l.showHistory(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := l.cut(ctx, shown)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range c.rest {
		if err := l.show(ctx, u); err != nil {
			return nil, nil, err
		}
	}
	l.joined = func() {
		for _, u := range c.states { // they are newer than those in the response
			if err := l.show(a.base, c.session.host.announce(u)); err != nil {
				a.log.Debug("update not sent", "session", c.session.id, "error", err)
			}
		}
		v.Release(l.front)
	}
	return c.session, c.result, nil
}

// show sends the client that loads an update, and waits until it has room.
func (l *load) show(ctx context.Context, u backend.Update) error {
	if l.rate != nil {
		l.rate.wait(ctx)
	}
	return l.front.sendUpdate(ctx, l.previous.address, u, forAnother)
}

// maxPasses limits how often a history is read to show what came while it was shown before.
const maxPasses, fewUpdates = 5, 200

// showHistory shows the client what is stored, if it loads, and returns how many updates those are.
// What comes while it is shown is shown too, until it is little.
func (l *load) showHistory(ctx context.Context) (shown int, err error) {
	if l.cause == backend.Resume {
		return 0, nil
	}
	for pass := 0; pass < maxPasses; pass++ {
		before := shown
		for u, err := range sessionstore.Joined(l.history(ctx, before, &shown)) {
			if err != nil {
				return 0, err
			}
			if err := l.show(ctx, u); err != nil {
				return 0, err
			}
		}
		if shown-before < fewUpdates {
			break
		}
	}
	return shown, nil
}

// history returns the stored history without its first updates, and sets read to how many were read
// together with these.
func (l *load) history(
	ctx context.Context, skip int, read *int,
) iter.Seq2[sessionstore.Update, error] {
	return func(yield func(sessionstore.Update, error) bool) {
		at := 0
		for u, err := range l.agent.options.Store.History(ctx, l.previous.host.stored) {
			if at++; err == nil && at <= skip {
				continue
			}
			*read = at
			if !yield(u, err) {
				return
			}
		}
	}
}

// cut is the moment at which a client begins to be shown a session with the others.
type cut struct {
	session *session
	rest    []backend.Update // that were not shown before
	states  []backend.Update
	result  json.RawMessage // of the response
}

// cut begins to keep updates for the client, and returns what came before and was not shown.
func (l *load) cut(ctx context.Context, shown int) (c cut, err error) {
	at := l.agent.queues.Ticket(l.previous.id, turns.Ordinary)
	defer at.Release()
	if err := at.Acquire(ctx); err != nil {
		return c, err
	}
	s := at.Queue.Active()
	if s == nil || s.host.viewers != l.previous.host.viewers {
		return c, errNotActive(l.previous.id) // it was closed meanwhile
	}
	if err := s.beginUpdate(ctx); err != nil {
		return c, err
	}
	defer s.endUpdate()
	if err := s.record.current().Flush(ctx); err != nil {
		return c, err
	}
	if l.cause == backend.Load {
		for u, err := range sessionstore.Joined(l.history(ctx, shown, &shown)) {
			if err != nil {
				return c, err
			}
			c.rest = append(c.rest, u)
		}
	}
	if c.states, err = s.states(ctx); err != nil {
		return c, err
	}
	c.session, c.result = s, s.joinResult()
	s.host.viewers.Keep(l.front)
	return c, nil
}

// states returns the states of the session. The caller has begun an update.
func (s *session) states(ctx context.Context) ([]backend.Update, error) {
	stored, err := s.agent.options.Store.States(ctx, s.host.stored)
	if err != nil {
		return nil, err
	}
	states := slices.DeleteFunc(slices.Clone(stored), func(u backend.Update) bool {
		_, newer := s.settings[u.Kind]
		return newer
	})
	for _, kind := range slices.Sorted(maps.Keys(s.settings)) {
		states = append(states, s.settings[kind])
	}
	return states, nil
}

// joinResult returns the result for a client that joins.
func (s *session) joinResult() json.RawMessage {
	result := withMeta(s.result, "viewers", backend.Encode(len(s.host.viewers.Clients())))
	if len(s.queue.Unanswered()) > 0 {
		result = withMeta(result, "turn", json.RawMessage(`{"running":true}`))
	}
	return result
}

// reopenForAll opens the session again with the roots that the client lists, which becomes one of
// its viewers only then. No turn runs, but the last one may not be answered yet.
func (l *load) reopenForAll(ctx context.Context) error {
	if err := l.at.Queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
		return err
	}
	s := l.previous
	p := s.params
	p.id, p.listed, p.missing = s.id, true, nil
	p.replaceRoots(l.rootsIn(s))
	again := &load{agent: l.agent, at: l.at, cause: backend.Resume, params: p, inTurn: true,
		stored: l.stored, previous: s}
	next, news, err := again.reopen(ctx)
	if err != nil {
		return err
	}
	l.previous = next
	paths := make([]string, 0, p.roots.Len())
	for _, dir := range p.roots.All() {
		paths = append(paths, shownPath(dir))
	}
	news = append(news, backend.Warning(backend.Text(
		"Another window opened this session with other folders. They are now: "+
			strings.Join(paths, ", ")+".")))
	for _, u := range news {
		if err := next.show(ctx, u); err != nil {
			l.agent.log.Debug("update not sent", "session", next.id, "error", err)
		}
	}
	return nil
}
