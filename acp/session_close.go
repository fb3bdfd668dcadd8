package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/internal/session/turns"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// queuedFunc serves a request about a session that need not be active. ctx is the context of the
// request, closing one that does not end when the client cancels the request. at holds the
// session's queue.
type queuedFunc func(
	c *connection, ctx, closing context.Context, at *ticket, params strictjson.Object,
) (json.RawMessage, error)

// queued accepts such a request, whose params have a shape. texts are its members besides sessionId,
// which must be strings.
func queued(
	kind turns.RequestKind, s *strictjson.Shape, do queuedFunc, texts ...string,
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
		at := c.home.queues.Ticket(sessionstore.ID(id), kind, c)
		r.AfterResponse(at.Release)
		return c.work(ctx, func(serving context.Context) (json.RawMessage, error) {
			closing, done := c.adapter.closingContext(ctx)
			defer done()
			if err := at.Acquire(serving); err != nil {
				return nil, err
			}
			return do(c, serving, closing, at, params)
		})
	}
}

// storedIn returns the stored session of a queue, which must belong to the client's agent, and the
// adapter that runs it, the client's own if it is not active.
func (c *connection) storedIn(
	ctx context.Context, q *queue,
) (s sessionstore.Session, runs *adapter, err error) {
	runs = c.adapter
	if active := q.Active(); active != nil {
		runs = active.adapter
	}
	if err = c.initialized(ctx); err == nil {
		s, err = c.adapter.sessions.Stored(ctx, q.ID)
	}
	return s, runs, protocolError(err)
}

// close closes a session for the client. If the session has other viewers that may answer, or the
// client may only see it, that is all. Otherwise it ends the session's turn and closes the session,
// which remains stored.
func (c *connection) close(
	ctx, closing context.Context, at *ticket, params strictjson.Object,
) (json.RawMessage, error) {
	s := at.Queue.Active()
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
	return s.end(ctx, closing, params.Without(protocol.SessionID))
}

// remove ends a session that is to be deleted or archived. It fails if another client has it open.
func (c *connection) remove(ctx, closing context.Context, at *ticket) error {
	s := at.Queue.Active()
	if s == nil {
		return nil
	}
	if s.viewers.Others(c) > 0 {
		return errOpenElsewhere(s.id, nil)
	}
	_, err := s.end(ctx, closing, nil)
	return err
}

// delete closes a session and removes it for good. A session that is gone from the store may still
// be active here.
func (c *connection) delete(
	ctx, closing context.Context, at *ticket, params strictjson.Object,
) (json.RawMessage, error) {
	s, a, err := c.storedIn(ctx, at.Queue)
	if unknown, ok := errors.AsType[*jsonrpc.Error](err); err != nil &&
		!(ok && unknown.Code == protocol.CodeNotFound) {
		return nil, err
	}
	if endErr := c.remove(ctx, closing, at); endErr != nil || err != nil {
		return nil, endErr
	}
	// The store remembers not to import the session again, even if the agent keeps it.
	result := a.sessions.Pass(ctx, protocol.SessionDelete, s, params)
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
