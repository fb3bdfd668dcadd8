package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/history/handoff"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
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
	if a.Cause == backend.Load && p.options.Profile.Replay.Late && a.History != nil {
		for _, err := range a.History {
			if err != nil {
				return nil, backend.Opened{}, err
			}
			r.hideReplay = true
			break
		}
	}
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

// opening describes why and how to open a session of the child.
type opening struct {
	backend.Activation
	state    state    // as saved; for a fork, that of its source
	previous *session // the activation to replace, nil if none

	hideReplay bool // the child's replay must not be used

	// open decides the rest.
	use         *use               // of the child in which the session is opened
	mode        profiles.RootsMode // how the child is given the roots
	systemParts []contextPart      // what the child is told in its system prompt
	method      backend.Cause      // of the request to the child
	earlier     *state             // see state.Earlier; what was said since is due in it
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

// usesReplay reports whether the child's replay is passed on: to show it, or to record what only
// the child knows.
func (r opening) usesReplay() bool {
	return r.Cause == backend.Load && !r.hideReplay || r.Cause == backend.Resume && r.MustExist
}

// ways returns the openings to try, in order: first that of the session which the saved one
// replaces, and then those in the table of the package comment. given are the additional
// directories in which the child may write.
func (r opening) ways(given workspace.Dirs) (ways []opening) {
	a, known := r.use.child.info, r.state.key() != ""
	r.copied = r.state.keepsOther(given)
	if e := r.state.Earlier; e != nil && r.Cause != backend.Fork && !e.keepsOther(given) {
		due := *e
		due.HistoryDue = e.HistoryDue || !r.state.HistoryDue
		r.earlier = &due
	}
	r.state.Earlier = nil
	if r.earlier != nil && (a.Load || a.Resume) {
		first := r
		first.state, first.earlier, first.Unlisted = *r.earlier, nil, false
		first.hideReplay = r.hideReplay || first.state.HistoryDue
		ways = first.ways(given)[:1]
		r.earlier = nil
	}
	by := func(method backend.Cause) {
		r.method = method
		ways = append(ways, r)
	}
	switch {
	case r.Cause == backend.New:
	case r.Cause == backend.Fork:
		if known && a.Fork {
			by(backend.Fork)
		}
	case r.copied:
		if a.Fork {
			by(backend.Fork)
		}
	case known && a.Load && (r.usesReplay() || !a.Resume):
		by(backend.Load)
		if r.Cause == backend.Resume && a.Resume {
			by(backend.Resume)
		}
	case known && a.Resume:
		by(backend.Resume)
	}
	if !r.MustExist {
		by(backend.New)
	}
	return ways
}

// follow notes in r that the child has rejected the opening before it. The next activation first
// tries a saved session that the child has not said it does not know. A rejected copy says nothing
// about the session, which may still exist.
func (r *opening) follow(before *opening, rejection *jsonrpc.Error) {
	r.earlier, r.rejected = before.earlier, before.rejected
	if before.method != backend.Load && before.method != backend.Resume {
		return
	}
	r.rejected = rejection
	if r.earlier == nil && !saysUnknown(rejection) {
		r.earlier = &before.state
	}
}

// open connects s to a session of a child. It tries the possible ways until one succeeds. If there
// is no error, the child is pinned.
func (s *session) open(
	ctx context.Context, r opening,
) (opened backend.Opened, cs *childSession, err error) {
	if r.use, r.mode, err = s.proxy.childFor(ctx, s, r); err != nil {
		return opened, nil, err
	}
	c := r.use.child
	defer func() {
		if err == nil {
			return
		}
		c.unpin()
		if releaseErr := r.use.release(context.WithoutCancel(ctx)); releaseErr != nil {
			c.log.Warn("cannot end an agent", "error", releaseErr)
		}
	}()
	if others := s.roots.Additional(); r.mode == profiles.RootsByContext && others.Len() > 0 {
		c.log.Info("the agent does not support additional folders: "+
			"describing them in the prompt instead", "agent", c.info.Name, "folders",
			others.Strings())
	}
	r.systemParts = s.systemParts(c, r.mode)
	ways := r.ways(s.given(r.mode))
	err = backend.ErrUnknownSession // without a way
	for i := range ways {
		var o openResult
		if o, err = s.tryWithoutTools(ctx, &ways[i]); err == nil {
			opened, err = s.commit(ctx, o, ways[i])
			return opened, o.session, err
		}
		if i+1 == len(ways) || !worthAnotherTry(err) || o.shown > 0 {
			break
		}
		// Its message is not logged, because it may quote the request with the secrets of MCP
		// servers.
		c.log.Warn("the agent rejected a request for a session: trying another one", "rejected",
			ways[i].method, "code", responseError(err).Code, "next", ways[i+1].method)
		ways[i+1].follow(&ways[i], responseError(err))
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
func (s *session) commit(ctx context.Context, o openResult, r opening) (backend.Opened, error) {
	if err := s.adopt(ctx, o, r); err != nil {
		s.drop(context.WithoutCancel(ctx), o.session)
		return backend.Opened{}, err
	}
	s.relays.publish(s)
	s.announced.outdated(s.host.Catalog())
	s.announceRoots(ctx, s.host)
	opened := backend.Opened{Result: o.result}
	if r.method == backend.New && r.rejected != nil {
		opened.Notice = s.startedOver(r.use.child, r.rejected)
	}
	if o.refused != nil {
		opened.Notice += s.refusedTools(r.use.child, o.refused)
	}
	if r.copied && r.Cause != backend.Fork {
		opened.Superseded = r.state.encode()
	}
	return opened, nil
}

// adopt saves the state of the child session, makes it the one of s, and leaves the previous one.
func (s *session) adopt(ctx context.Context, o openResult, r opening) error {
	if r.Unlisted && r.method == backend.Load && o.shown == 0 {
		return backend.ErrUnknownSession // some agents load any id
	}
	saved, pendingHistory, err := s.plan(o, r)
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
func (s *session) plan(
	o openResult, r opening,
) (saved state, pendingHistory string, err error) {
	if r.method != backend.New {
		saved = r.state
	}
	saved.ID, saved.RootsMode, saved.From = o.session.id, r.mode, r.state.From
	if r.earlier != nil && r.earlier.key() != saved.key() {
		saved.Earlier = r.earlier
	}
	saved.SentTools = s.toolServer(r.mode, saved).files
	saved.RefusesTools = s.refusesTools.Load()
	commands, _ := s.rootCommands(s.announced.childCommands())
	saved.Offered = len(commands) > 0
	lacksHistory := r.method == backend.New && r.Cause != backend.New
	if lacksHistory || saved.HistoryDue {
		if pendingHistory, err = s.earlierConversation(saved.From); err != nil {
			return state{}, "", err
		}
		saved.HistoryDue = pendingHistory != ""
	}
	if r.mode != profiles.RootsByContext {
		saved.SentRoots = ""
	}
	if s.proxy.options.Profile.Roots.Keeps {
		saved.Granted = dirDigests(s.given(r.mode))
	}
	if r.method == backend.New {
		for _, part := range r.systemParts {
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
