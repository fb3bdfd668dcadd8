package acp

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replaying is the history that a runtime shows the client while it opens: stored in segments beside that, to
// replace ours with the commit (P7). However long it is, little of it is in memory.
type replaying struct {
	draft    sessionstore.Draft
	recorder *sessionstore.Recorder
}

// drafting is the store as the recorder of a replay sees it: it appends to the draft.
type drafting struct {
	sessionstore.Store
	draft sessionstore.Draft
}

// Append implements [sessionstore.Store].
func (d drafting) Append(ctx context.Context, _ sessionstore.Lease, segment []sessionstore.Update) error {
	return d.draft.Append(ctx, segment)
}

// newReplaying starts a history.
func (a *agent) newReplaying(ctx context.Context, id sessionstore.ID) (*replaying, error) {
	draft, err := a.options.Store.NewDraft(ctx, id)
	if err != nil {
		return nil, err
	}
	r := sessionstore.NewRecorder(drafting{a.options.Store, draft}, sessionstore.Lease{}, a.options.tuning.Recorder)
	return &replaying{draft: draft, recorder: r}, nil
}

// discard drops the history.
func (r *replaying) discard(ctx context.Context) error {
	closed := r.recorder.Close(ctx)
	return errors.Join(closed, r.draft.Discard(ctx))
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	if h.pace == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "a replay outside of a load")
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
		replayed, err := h.agent.newReplaying(ctx, h.id)
		if err != nil {
			return err
		}
		h.replayed = replayed
	}
	h.pace.wait(ctx)
	if err := h.agent.conn.Notify(ctx, methodUpdate, putSession(u, h.id)); err != nil {
		return err
	}
	return h.replayed.recorder.Record(ctx, u)
}

// takeReplayed returns what was replayed as the history of the commit, which may be empty. From then on the host
// does not own it.
func (h *host) takeReplayed(ctx context.Context) (sessionstore.Draft, error) {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		var err error
		if h.replayed, err = h.agent.newReplaying(ctx, h.id); err != nil {
			return nil, err
		}
	}
	if err := h.replayed.recorder.Close(ctx); err != nil {
		return nil, err
	}
	return h.replayed.draft, nil
}

// dropReplayed drops what was replayed and not committed. After a commit that is nothing.
func (h *host) dropReplayed(ctx context.Context) error {
	h.replays.Lock()
	defer h.replays.Unlock()
	if h.replayed == nil {
		return nil
	}
	dropped := h.replayed
	h.replayed = nil
	return dropped.discard(ctx)
}
