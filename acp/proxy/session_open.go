package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/history/handoff"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Open implements [backend.Backend]: it opens a session of the child.
func (p *proxy) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	roots, err := parseRoots(a.Params)
	if err != nil {
		return nil, backend.Opened{}, err
	}
	if w := h.Workspace(); w != nil {
		roots = roots.Granting(w.Roots().Grant)
	}
	s := &session{
		proxy: p, host: h, roots: roots, params: a.Params, history: a.History,
		announced: &announcement{said: make(map[string]bool)}, reviving: make(chan struct{}, 1),
	}
	s.nested = sync.OnceValues(s.findNested)
	p.addSecrets(a.Params)
	r := opening{Activation: a, state: decodeState(a.State)}
	s.refusesTools.Store(r.state.RefusesTools)
	s.announced.stale = r.state.Offered && a.Cause != backend.Fork
	if previous, _ := a.Previous.(*session); previous != nil {
		r.previous, s.announced = previous, previous.announced
	}
	s.relays = s.joinRelays(r)
	opened, cs, err := s.open(ctx, r)
	if err != nil {
		return nil, backend.Opened{}, errors.Join(err, s.relays.leave(s))
	}
	cs.child.unpin()
	opened.Notice = p.sandboxNotice() + opened.Notice
	return s, opened, nil
}

// opening describes why to open a session of a child.
type opening struct {
	backend.Activation
	state    state    // as saved; for a fork, that of its source
	previous *session // the activation to replace, nil if none
}

// way is one way to do it.
type way struct {
	opening               // its state is that of the child session to open or copy
	use     *use          // of the child
	method  backend.Cause // of the request to the child
	earlier *state        // see state.Earlier; what was said since is due in it
	// copied is set if a copy replaces the child session, which keeps directories it must lose.
	copied bool
	// rejected is the child's answer if it did not load or resume a session before, or nil.
	rejected *jsonrpc.Error
}

// current returns the child session of the activation to replace, nil if none.
func (r opening) current() *childSession {
	if r.previous == nil {
		return nil
	}
	return r.previous.running()
}

// usesReplay reports whether the child's replay is passed on: to show what is not stored, or to
// record what only the child knows.
func (r opening) usesReplay() bool {
	return r.Cause == backend.Load || r.Cause == backend.Resume && r.MustExist
}

// ways returns the ways to try in a child, in order: first that of the session which the saved one
// replaces, and then those in the table of the package comment.
func (r opening) ways(u *use) (ways []way) {
	given := u.session.given(u.mode)
	earlier := r.state.Earlier
	r.state.Earlier = nil
	w := way{opening: r, use: u, copied: r.state.keepsOther(given)}
	if earlier != nil && r.Cause != backend.Fork && !earlier.keepsOther(given) {
		due := *earlier
		due.HistoryDue = earlier.HistoryDue || !r.state.HistoryDue
		if info := u.child.info; info.Load || info.Resume {
			first := r
			first.state, first.Unlisted = due, false
			ways = first.ways(u)[:1]
		} else {
			w.earlier = &due
		}
	}
	for _, method := range r.methods(u.child.info, w.copied) {
		w.method = method
		ways = append(ways, w)
	}
	return ways
}

// methods returns the requests that can open or copy the saved session in an agent, in order.
// copied says that only a copy can be used.
func (r opening) methods(a client.Agent, copied bool) (methods []backend.Cause) {
	known := r.state.key() != ""
	switch {
	case r.Cause == backend.New:
	case r.Cause == backend.Fork && !known:
	case r.Cause == backend.Fork || copied:
		if a.Fork {
			methods = append(methods, backend.Fork)
		}
	case known && a.Load && (r.usesReplay() || !a.Resume):
		methods = append(methods, backend.Load)
		if r.Cause == backend.Resume && a.Resume {
			methods = append(methods, backend.Resume)
		}
	case known && a.Resume:
		methods = append(methods, backend.Resume)
	}
	if !r.MustExist {
		methods = append(methods, backend.New)
	}
	return methods
}

// follow notes in w that the child has rejected the way before it. The next activation first tries
// a saved session that the child has not said it does not know. A rejected copy says nothing about
// the session, which may still exist.
func (w *way) follow(before way, rejection *jsonrpc.Error) {
	w.earlier, w.rejected = before.earlier, before.rejected
	if before.method != backend.Load && before.method != backend.Resume {
		return
	}
	w.rejected = rejection
	if w.earlier == nil && !saysUnknown(rejection) {
		w.earlier = &before.state
	}
}

// open connects s to a session of a child. It tries the possible ways until one succeeds. If there
// is no error, the child is pinned.
func (s *session) open(
	ctx context.Context, r opening,
) (opened backend.Opened, cs *childSession, err error) {
	u, err := s.proxy.childFor(ctx, s, r)
	if err != nil {
		return opened, nil, err
	}
	c := u.child
	defer func() {
		if err == nil {
			return
		}
		c.unpin()
		if releaseErr := u.release(context.WithoutCancel(ctx)); releaseErr != nil {
			c.log.Warn("cannot end an agent", "error", releaseErr)
		}
	}()
	if others := s.roots.Additional(); u.mode == profiles.RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", c.info.Name, "folders",
			others.Strings())
	}
	ways := r.ways(u)
	err = backend.ErrUnknownSession // without a way
	for i, w := range ways {
		var o openResult
		if o, err = s.tryWithoutTools(ctx, w); err == nil {
			opened, err = s.commit(ctx, o, w)
			return opened, o.session, err
		}
		if i+1 == len(ways) || !worthAnotherTry(err) || o.shown > 0 {
			break
		}
		// Its message is not logged, because it may quote the request with the secrets of MCP
		// servers.
		c.log.Warn("the agent rejected a request for a session: trying another one", "rejected",
			w.method, "code", responseError(err).Code, "next", ways[i+1].method)
		ways[i+1].follow(w, responseError(err))
	}
	if r.MustExist && worthAnotherTry(err) {
		c.log.Info("the agent rejected a request for a session that only it may know",
			"code", responseError(err).Code)
		err = fmt.Errorf("%w: %w", backend.ErrUnknownSession, err)
	}
	return opened, nil, err
}

// commit makes the opened child session the one of s, and announces its roots and commands. If it
// fails, s leaves the child session.
func (s *session) commit(ctx context.Context, o openResult, w way) (backend.Opened, error) {
	if err := s.adopt(ctx, o, w); err != nil {
		s.drop(context.WithoutCancel(ctx), o.session)
		return backend.Opened{}, err
	}
	s.relays.publish(s)
	s.announced.outdated(s.host.Catalog())
	s.announceRoots(ctx, s.host)
	opened := backend.Opened{Result: o.result}
	if w.method == backend.New && w.rejected != nil {
		opened.Notice = s.startedOver(w.use.child, w.rejected)
	}
	if o.refused != nil {
		opened.Notice += s.refusedTools(w.use.child, o.refused)
	}
	if w.copied && w.Cause != backend.Fork {
		opened.Superseded = w.state.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it the one of s, and leaves the previous one.
func (s *session) adopt(ctx context.Context, o openResult, w way) error {
	if w.Unlisted && w.method == backend.Load && o.shown == 0 {
		return backend.ErrUnknownSession // some agents load any id
	}
	saved, pendingHistory, err := s.plan(o, w)
	if err != nil {
		return err
	}
	if err := s.host.SaveState(ctx, saved.encode()); err != nil {
		return err
	}
	s.mu.Lock()
	before, closed := s.current, s.closed
	if !closed {
		s.current, s.state, s.pendingHistory = o.session, saved, pendingHistory
	}
	s.mu.Unlock()
	switch {
	case closed:
		return errSessionClosed
	case before != nil:
		s.drop(ctx, before)
	}
	return nil
}

// startedOver returns a text for the user about a session that the child rejected, or "" if there
// is no conversation to tell the child.
func (s *session) startedOver(c *child, rejected error) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pendingHistory == "" {
		return ""
	}
	return fmt.Sprintf("%s does not open its own session: %s. The conversation continues in a new "+
		"session of %[1]s, which gets what was said so far. The next load tries the agent's own "+
		"session again.\n\n",
		s.agentName(c), text.Line(rejected.Error(), maxTitle))
}

// agentName returns what the user is told that the agent is called.
func (s *session) agentName(c *child) string {
	return cmp.Or(s.proxy.options.Profile.Title, c.info.Name, "the agent")
}

// worthAnotherTry reports whether to try another way after an error. Agents use many codes for
// sessions that they do not know.
func worthAnotherTry(err error) bool {
	e := responseError(err)
	return e != nil && e.Code != protocol.CodeAuthRequired && e.Code != jsonrpc.CodeCancelled
}

// drop leaves a child session that s does not need.
func (s *session) drop(ctx context.Context, cs *childSession) {
	if _, err := cs.leave(ctx, s, backend.Raw(`{}`)); err != nil {
		s.proxy.log.Warn("cannot close a session of the agent", "error", err)
	}
}

// plan returns the state to save for a child session, and the conversation to tell the child in its
// next prompt.
func (s *session) plan(o openResult, w way) (saved state, pendingHistory string, err error) {
	if w.method != backend.New {
		saved = w.state
	}
	saved.ID, saved.RootsMode, saved.From = o.session.id, w.use.mode, w.state.From
	if w.earlier != nil && w.earlier.key() != saved.key() {
		saved.Earlier = w.earlier
	}
	saved.SentTools = s.toolServer(w.use.mode, saved).files
	saved.RefusesTools = s.refusesTools.Load()
	commands, _ := s.rootCommands(s.announced.childCommands())
	saved.Offered = len(commands) > 0
	lacksHistory := w.method == backend.New && w.Cause != backend.New
	if lacksHistory || saved.HistoryDue {
		if pendingHistory, err = s.earlierConversation(saved.From); err != nil {
			return state{}, "", err
		}
		saved.HistoryDue = pendingHistory != ""
	}
	if w.use.mode != profiles.RootsByContext {
		saved.SentRoots = ""
	}
	if s.proxy.options.Profile.Roots.Keeps {
		saved.Granted = dirDigests(s.given(w.use.mode))
	}
	if w.method == backend.New {
		for _, part := range o.systemParts {
			*part.sent(&saved) = part.digest
		}
	}
	return saved, pendingHistory, nil
}

// earlierConversation returns what to tell the child of the conversation that it does not have, and
// that another agent has led if from is not "".
func (s *session) earlierConversation(from string) (string, error) {
	return handoff.Digest(s.history, handoff.Options{
		Limit: s.proxy.options.limits.MaxContext, From: from, Unsent: s.unsentBlocks(),
	})
}
