package proxy

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// reopen loads or resumes the child session that was saved.
func (s *session) reopen(ctx context.Context, r opening) (o openResult, err error) {
	params, err := s.lifecycleParams(r)
	if err != nil {
		return o, err
	}
	cs, err := s.joinSaved(ctx, r)
	if err != nil {
		return o, err
	}
	uses := r.method == backend.Load && r.usesReplay()
	late := r.method == backend.Load && s.proxy.options.Profile.Replay.Late
	if uses {
		s.updates.set(replaying)
	} else {
		s.updates.set(discarding)
	}
	replayed := 0
	o.session = cs
	o.result, err = r.use.child.requestFunc(ctx, string(r.method), params,
		func(_ backend.Raw, err error) {
			if err == nil && !late {
				replayed = s.finishReplay(ctx)
			}
		})()
	if err == nil && late {
		s.awaitReplay(ctx, cs)
		replayed = s.finishReplay(ctx)
	}
	if responseError(err) == nil { // otherwise it has changed nothing
		cs.locked(func() { cs.requester = s })
	}
	if err == nil {
		o.shown = replayed
	} else {
		o.shown, _ = s.updates.end() // not replayed: a late response may be setting it
		s.undoJoin(ctx, cs, err)
	}
	if !uses {
		o.shown = 0 // what came was dropped
	}
	return o, err
}

// undoJoin undoes joinSaved after the lifecycle request has failed. If there was no response, the
// child may have opened the session for s anyway.
func (s *session) undoJoin(ctx context.Context, cs *childSession, err error) {
	if left := cs.abandon(s); left > 0 || responseError(err) != nil {
		return
	}
	lasting := context.WithoutCancel(ctx)
	if _, err := cs.child.closeSession(lasting, cs.id, backend.Raw(`{}`)); err != nil {
		cs.child.log.Warn("cannot close a session of the agent", "error", err)
	}
}

// joinSaved makes s a user of the child session that was saved, and routes its messages to s. It
// ends a turn that is running there.
func (s *session) joinSaved(ctx context.Context, r opening) (*childSession, error) {
	c, current := r.use.child, r.current()
	if current != nil && r.Stop != nil {
		// The child cannot open a session while a turn is running in it, and the turn's updates
		// would be mixed with the replay.
		if err := r.Stop(ctx); err != nil {
			return nil, err
		}
	}
	if current != nil && current.key != r.state.key() {
		current = nil
	}
	if current != nil && current.child == c {
		current.join(r.use)
		current.locked(func() { current.owner = s })
		return current, nil
	}
	cs := newChildSession(c, r.state.ID)
	cs.join(r.use)
	err := cs.attach()
	if errors.Is(err, errDuplicateID) {
		err = errAlreadyOpen
	}
	return cs, err
}

var errAlreadyOpen = errors.New(
	"the agent's session is already open here under another id: close that one first")

// finishReplay ends the replay, passes on the latest states, and returns how many updates were
// replayed. Usually the response has just been read, and it runs on the read loop.
func (s *session) finishReplay(ctx context.Context) (replayed int) {
	replayed, states := s.updates.end()
	for _, state := range states {
		if err := s.showUpdate(ctx, s.host, state); err != nil {
			s.proxy.log.Debug("cannot pass on a state of the agent", "kind", state.Kind,
				"error", err)
		}
	}
	return replayed
}
