package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// storedFunc serves a request about a session that need not be active. ctx is the context of the
// request, closing one that does not end when the client cancels the request. at holds the
// session's queue.
type storedFunc func(
	ctx, closing context.Context, at *ticket, params params,
) (json.RawMessage, error)

// acceptStored accepts such a request. texts are its members besides sessionId, which must be
// strings.
func (a *agent) acceptStored(
	ctx context.Context, r *jsonrpc.Request, kind turns.RequestKind, do storedFunc, texts ...string,
) jsonrpc.Work {
	params := parseParams(r.Params, storedShape(texts...))
	var v strictjson.Violations
	id := v.Text(params.Field(protocol.SessionID))
	for _, name := range texts {
		v.Text(params.Field(name))
	}
	if err := cmp.Or(params.err, v.Err()); err != nil {
		return jsonrpc.Fail(err)
	}
	at := a.queues.Ticket(sessionstore.ID(id), kind)
	r.AfterResponse(at.Release)
	return func() (json.RawMessage, error) {
		closing, done := a.closingContext(ctx)
		defer done()
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		if err := at.Acquire(ctx); err != nil {
			return nil, err
		}
		result, err := do(ctx, closing, at, params)
		return result, protocolError(err)
	}
}

// stored returns a stored session, which must belong to this agent.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.sessions.Stored(ctx, id)
	return s, protocolError(err)
}

// pass passes a request about a stored session on to an agent that serves it, and returns the
// result of the response, nil if there is none.
func (a *agent) pass(
	ctx context.Context, method string, s sessionstore.Session, params params,
) json.RawMessage {
	return a.sessions.Pass(ctx, method, s, params.Without(protocol.SessionID))
}

// closeFor returns what closes a session for from's client. If the session has other viewers, that
// is all. Otherwise it ends the session's turn and closes the session, which stays stored.
func (a *agent) closeFor(from *agent) storedFunc {
	return func(
		ctx, closing context.Context, at *ticket, params params,
	) (json.RawMessage, error) {
		if s := at.Queue.Active(); s != nil && s.host.viewers.Others(from) > 0 {
			a.keep(s, s.host.viewers.Leave(from), from.graceNow())
			return nil, nil
		}
		return a.end(ctx, closing, at, params.Without(protocol.SessionID))
	}
}

// end ends a session's turn and closes the session, if it is active. params are those of a
// session/close, or nil.
func (a *agent) end(
	ctx, closing context.Context, at *ticket, params backend.Raw,
) (json.RawMessage, error) {
	s := at.Queue.Active()
	if s == nil {
		return nil, nil
	}
	if err := at.Queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
		return nil, err
	}
	return a.closeSession(closing, s, params), nil
}

// delete closes a session and removes it for good. A session that is gone from the store may still
// be active here.
func (a *agent) delete(
	ctx, closing context.Context, at *ticket, params params,
) (json.RawMessage, error) {
	s, err := a.stored(ctx, at.Queue.ID)
	if unknown, ok := errors.AsType[*jsonrpc.Error](err); err != nil &&
		!(ok && unknown.Code == protocol.CodeNotFound) {
		return nil, err
	}
	if _, endErr := a.end(ctx, closing, at, nil); endErr != nil || err != nil {
		return nil, endErr
	}
	// The store remembers not to import the session again, even if the agent keeps it.
	result := a.pass(ctx, protocol.SessionDelete, s, params)
	if err := a.options.Store.Delete(ctx, s.ID); err != nil {
		return nil, err
	}
	if err := a.consents().ForgetSession(string(s.ID)); err != nil {
		a.log.Warn("cannot forget the folders of the deleted session", "session", s.ID,
			"error", err)
	}
	return result, nil
}

// closeSession closes s if it is the active session of its queue. params are those of a
// session/close, nil for any other reason; the result is the backend's part of its response.
func (a *agent) closeSession(
	ctx context.Context, s *session, params backend.Raw,
) (result json.RawMessage) {
	if !s.queue.Deactivate(s) {
		return nil
	}
	a.releaseSession()
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	defer s.host.viewers.Close()
	result, err := s.close(ctx, params)
	if err != nil && !errors.Is(err, backend.ErrClosed) { // the end of the connection was faster
		a.log.Warn("cannot close the session", "session", s.id, "error", err)
	}
	return result
}

// evict closes a session that another process took over or deleted, once its turn was answered.
func (a *agent) evict(s *session, cause error) {
	a.log.Info("the session ended: another process opened or deleted it", "session", s.id,
		"cause", cause)
	at := a.queues.Ticket(s.id, turns.Lifecycle)
	a.tasks.Go(func() {
		defer at.Release()
		if at.Acquire(a.base) != nil || at.Queue.Active() != s {
			return
		}
		if at.Queue.EndTurns(a.base, cause) == nil {
			a.closeSession(a.base, s, nil)
		}
	})
}
