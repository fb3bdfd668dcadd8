package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// acceptEnd is the first half of session/close and session/delete.
func (a *agent) acceptEnd(ctx context.Context, r *wire.Request, end func(context.Context, *place) error) wire.Work {
	id, err := decodeSessionID(r.Params)
	if err != nil {
		return failed(err)
	}
	at := a.lanes.enter(id, entryLifecycle)
	r.AfterResponse(func() {
		at.leave()
		a.lanes.forget(at.lane)
	})
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		if err := at.wait(ctx); err != nil {
			return nil, err
		}
		return nil, asWire(end(ctx, at))
	}
}

// close ends a session's turn and frees it; what is stored stays (A28).
func (a *agent) close(ctx context.Context, at *place) error {
	s := at.lane.active()
	if s == nil {
		return nil
	}
	if err := at.lane.endTurn(ctx, runtime.ErrCancelled); err != nil {
		return err
	}
	a.closeSession(context.WithoutCancel(ctx), s)
	return nil
}

// delete removes a session for good, closing it first (A28). One that is gone from the store may be active here.
func (a *agent) delete(ctx context.Context, at *place) error {
	if _, err := a.stored(ctx, at.lane.id); err != nil {
		var unknown *wire.Error
		if errors.As(err, &unknown) && unknown.Code == codeNotFound {
			return a.close(ctx, at)
		}
		return err
	}
	if err := a.close(ctx, at); err != nil {
		return err
	}
	if err := a.deleteForeign(ctx, at.lane.id); err != nil && !errors.As(err, new(*sessionstore.NotFoundError)) {
		return err
	}
	return a.options.Store.Delete(ctx, at.lane.id)
}
