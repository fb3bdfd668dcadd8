package acp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// acceptEnd is the first half of session/close and session/delete. end is given the request's context, and one for
// what is done in any case.
func (a *agent) acceptEnd(ctx context.Context, r *jsonrpc.Request, end func(ctx, closing context.Context, at *place) error) jsonrpc.Work {
	id, err := decodeSessionID(r.Params)
	if err != nil {
		return failed(err)
	}
	at := a.lanes.enter(id, entryLifecycle)
	r.AfterResponse(at.leave)
	return func() (json.RawMessage, error) {
		closing, done := a.closing(ctx)
		defer done()
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		if err := at.wait(ctx); err != nil {
			return nil, err
		}
		return nil, asWire(end(ctx, closing, at))
	}
}

// closing is a context for the end of a session, which goes on though the client cancels the request. Once the client
// has left it lasts for half of the grace alone: then MCP servers that do not want to end are killed, and there is time
// left to answer the request (W9).
func (a *agent) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
			return
		}
		timer := time.NewTimer(a.options.tuning.CloseGrace / 2)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-closing.Done():
		}
	})
	return closing, func() {
		stop()
		cancel()
	}
}

// close ends a session's turn and frees it; what is stored stays (A28).
func (a *agent) close(ctx, closing context.Context, at *place) error {
	s := at.lane.active()
	if s == nil {
		return nil
	}
	if err := at.lane.endTurn(ctx, backend.ErrCancelled); err != nil {
		return err
	}
	a.closeSession(closing, s)
	return nil
}

// delete removes a session for good, closing it first (A28). One that is gone from the store may be active here.
func (a *agent) delete(ctx, closing context.Context, at *place) error {
	if _, err := a.stored(ctx, at.lane.id); err != nil {
		var unknown *jsonrpc.Error
		if errors.As(err, &unknown) && unknown.Code == codeNotFound {
			return a.close(ctx, closing, at)
		}
		return err
	}
	if err := a.close(ctx, closing, at); err != nil {
		return err
	}
	if err := a.deleteForeign(ctx, at.lane.id); err != nil && !errors.As(err, new(*sessionstore.NotFoundError)) {
		return err
	}
	return a.options.Store.Delete(ctx, at.lane.id)
}

func decodeSessionID(params json.RawMessage) (sessionstore.ID, error) {
	object, wrong := readParams(params, sessionShape)
	if len(wrong) > 0 {
		return "", strictjson.Refuse(wrong...)
	}
	id, wrong := object.Field("sessionId").Text()
	return sessionstore.ID(id), strictjson.Refuse(wrong...)
}
