package acp

import (
	"context"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replayed is a history that the backend shows the client while it opens a session. To save memory
// it is stored in a draft, which replaces the stored history when the load is stored.
type replayed struct {
	agent    *agent
	draft    sessionstore.Draft
	recorder *sessionstore.Recorder
	children *childLimit
}

// append appends a segment to the draft.
func (r *replayed) append(ctx context.Context, segment []sessionstore.Update) error {
	return r.agent.tasks.Guard("session store", func() error { return r.draft.Append(ctx, segment) })
}

// discard discards the draft, unless it has become a session's history.
func (r *replayed) discard(ctx context.Context) error {
	err := r.recorder.Close(ctx)
	return errors.Join(err, r.agent.tasks.Guard("session store", func() error {
		return r.draft.Discard(ctx)
	}))
}

func (h *host) newReplayed(ctx context.Context) (*replayed, error) {
	a, id := h.agent, h.stored
	if h.foreign {
		id = ""
	}
	r := &replayed{agent: a, children: a.newChildLimit()}
	err := a.tasks.Guard("session store", func() (err error) {
		r.draft, err = a.options.Store.NewDraft(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.recorder = sessionstore.NewRecorder(r.append, a.options.tuning.Recorder)
	return r, nil
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update, from backend.Replay) error {
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
	when := asItComes
	if from == backend.FromStore {
		when = forAnother
	}
	if h.front != h.agent { // the backend does not know this client
		when = forAnother
	}
	if err := h.front.sendUpdate(ctx, newAddress(h.id), u, when); err != nil {
		return err
	}
	if !h.replayed.children.admits(u) {
		return nil
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
	return r.discard(ctx)
}
