package acp

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replayed is a history that the backend shows the client while it opens a session. It is stored in
// a draft, which replaces the stored history when the load is stored, so that little of it is in
// memory.
type replayed struct {
	draft    sessionstore.Draft
	recorder *sessionstore.Recorder
}

// draftAppender makes a recorder append to a draft.
type draftAppender struct{ draft sessionstore.Draft }

// Append implements [sessionstore.Appender].
func (d draftAppender) Append(
	ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update,
) error {
	return d.draft.Append(ctx, segment)
}

func (h *host) newReplayed(ctx context.Context) (*replayed, error) {
	a, id := h.agent, h.id
	if h.foreign {
		id = ""
	}
	draft, err := a.options.Store.NewDraft(ctx, id)
	if err != nil {
		return nil, err
	}
	r := sessionstore.NewRecorder(draftAppender{draft}, sessionstore.Lease{},
		a.options.tuning.Recorder)
	return &replayed{draft: draft, recorder: r}, nil
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	if h.rate == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load replays a history")
	}
	if err := h.stop(ctx); err != nil {
		return err
	}
	if err := checkUpdate(u); err != nil {
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
		var err error
		if h.replayed, err = h.newReplayed(ctx); err != nil {
			return err
		}
	}
	h.rate.wait(ctx)
	if err := h.agent.conn.Notify(ctx, protocol.SessionUpdate,
		putSessionID(u.Raw, h.id)); err != nil {
		return err
	}
	return h.replayed.recorder.Record(ctx, u)
}

// takeReplayed returns what was replayed, possibly nothing, as the session's new history.
func (h *host) takeReplayed(ctx context.Context) (sessionstore.Draft, error) {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		var err error
		if h.replayed, err = h.newReplayed(ctx); err != nil {
			return nil, err
		}
	}
	if err := h.replayed.recorder.Close(ctx); err != nil {
		return nil, err
	}
	return h.replayed.draft, nil
}

// dropReplayed discards what was replayed, unless it has become the session's history.
func (h *host) dropReplayed(ctx context.Context) error {
	h.replays.Lock()
	defer h.replays.Unlock()
	r := h.replayed
	if r == nil {
		return nil
	}
	h.replayed = nil
	return errors.Join(r.recorder.Close(ctx), r.draft.Discard(ctx))
}
