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

// queuedRequest is a request about a session that need not be active. It does not change.
type queuedRequest struct {
	from   *connection
	sent   context.Context // ends when the client cancels the request or leaves
	params strictjson.Object
	ticket *ticket // holds the session's queue
}

// queued accepts such a request, whose params have a shape. texts are its members besides sessionId,
// which must be strings.
func queued(
	kind turns.RequestKind, s *strictjson.Shape,
	do func(queuedRequest, context.Context) (json.RawMessage, error), texts ...string,
) acceptFunc {
	return func(c *connection, ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		params, err := parseParams(r.Params, s)
		var v strictjson.Violations
		id := v.Text(params.Field(protocol.SessionID))
		for _, name := range texts {
			v.Text(params.Field(name))
		}
		if err = cmp.Or(err, v.Err()); err != nil {
			return jsonrpc.Fail(err)
		}
		ticket := c.home.queues.Ticket(sessionstore.ID(id), kind, c)
		r.AfterResponse(ticket.Release)
		q := queuedRequest{from: c, sent: ctx, params: params, ticket: ticket}
		return c.work(ctx, func(ctx context.Context) (json.RawMessage, error) {
			if err := ticket.Acquire(ctx); err != nil {
				return nil, err
			}
			return do(q, ctx)
		})
	}
}

// stored returns the stored session, which must belong to the client's agent, and the adapter that
// runs it, the client's own if it is not active.
func (q queuedRequest) stored(
	ctx context.Context,
) (s sessionstore.Session, runs *adapter, err error) {
	runs = q.from.adapter
	if active := q.ticket.Queue.Active(); active != nil {
		runs = active.adapter
	}
	if err = q.from.initialized(ctx); err == nil {
		s, err = q.from.adapter.sessions.Stored(ctx, q.ticket.Queue.ID)
	}
	return s, runs, protocolError(err)
}

// close closes a session for the client. If the session has other viewers that may answer, or the
// client may only see it, that is all. Otherwise it ends the session's turn and closes the session,
// which remains stored.
func (q queuedRequest) close(ctx context.Context) (json.RawMessage, error) {
	c, s := q.from, q.ticket.Queue.Active()
	if s == nil {
		return nil, nil
	}
	v := s.viewers
	if !v.Has(c) {
		return nil, errNotActive(s.id)
	}
	if v.OthersAnswer(c) || !c.peer.Role.has(toAct) {
		s.leave(c)
		return nil, nil
	}
	return q.end(ctx, s, q.params.Without(protocol.SessionID))
}

// end ends the turns of the active session, and closes it. params are those of a session/close, or
// nil; the result is the backend's part of the response.
func (q queuedRequest) end(
	ctx context.Context, s *session, params backend.Raw,
) (json.RawMessage, error) {
	closing, done := q.from.adapter.closingContext(q.sent)
	defer done()
	if err := s.queue.EndTurns(ctx, backend.ErrCancelled); err != nil {
		return nil, err
	}
	return s.close(closing, params), nil
}

// remove ends a session that is to be deleted or archived. It fails if another client has it open.
func (q queuedRequest) remove(ctx context.Context) error {
	s := q.ticket.Queue.Active()
	if s == nil {
		return nil
	}
	if s.viewers.Others(q.from) > 0 {
		return errOpenElsewhere(s.id, nil)
	}
	_, err := q.end(ctx, s, nil)
	return err
}

// delete closes a session and removes it for good. A session that is gone from the store may still
// be active here.
func (q queuedRequest) delete(ctx context.Context) (json.RawMessage, error) {
	s, a, err := q.stored(ctx)
	if unknown, ok := errors.AsType[*jsonrpc.Error](err); err != nil &&
		!(ok && unknown.Code == protocol.CodeNotFound) {
		return nil, err
	}
	if endErr := q.remove(ctx); endErr != nil || err != nil {
		return nil, endErr
	}
	// The store remembers not to import the session again, even if the agent keeps it.
	result := a.sessions.Pass(ctx, protocol.SessionDelete, s, q.params)
	if err := a.options.Store.Delete(ctx, s.ID); err != nil {
		return nil, err
	}
	err = errors.Join(a.snapshots().Remove(string(s.ID)), a.consents().ForgetSession(string(s.ID)))
	if err != nil {
		a.log.Warn("cannot remove the snapshots and folders of the deleted session",
			"session", s.ID, "error", err)
	}
	return result, nil
}
