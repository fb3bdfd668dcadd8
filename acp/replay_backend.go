package acp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// agentReplay is a history that the backend replays while it opens a session for a load or resume.
// What the store has of it is passed over: the stored history is shown instead, and nothing
// replaces it. To save memory, the rest is stored in a draft, which is added to the stored history
// when the load is stored.
type agentReplay struct {
	adapter  *adapter
	cause    backend.Cause
	id       sessionstore.ID // of the session
	isStored bool            // otherwise only the backend knew it
	endTurns func() error    // ends the turns of the previous session, once
	shown    atomic.Bool     // the client is shown the history as it comes
	replayed tasks.Mutex[replayed]
	show     func(context.Context, backend.Update) error // see opening.show
}

// replayed is what the backend has replayed so far.
type replayed struct {
	stored   record.End
	recorder *sessionstore.Recorder // nil unless the backend replays a history
	draft    sessionstore.Draft     // the recorder's until it is closed; nil if there is nothing to add
	children *record.ChildLimit
}

// newReplay returns a replay in which nothing was replayed yet. ctx is that of the request.
func (o opening) newReplay(ctx context.Context) *agentReplay {
	o.previous = nil // otherwise the new session would keep it in memory
	return &agentReplay{adapter: o.adapter, cause: o.cause, id: o.source.ID,
		isStored: !o.source.Unstored, show: o.show, replayed: tasks.NewMutex(replayed{}),
		endTurns: sync.OnceValue(func() error { return o.endTurns(ctx) })}
}

// begin begins to record what is replayed.
func (r *agentReplay) begin(ctx context.Context, to *replayed) (err error) {
	if to.stored, err = r.readStored(ctx); err != nil {
		return err
	}
	r.shown.Store(to.stored.IsEmpty() && r.cause == backend.Load)
	to.children = r.adapter.newChildLimit()
	var of sessionstore.ID // see Histories.NewDraft
	if r.isStored {
		of = r.id
	}
	add := func(ctx context.Context, segment []sessionstore.Update) error {
		return r.adapter.tasks.Guard("session store", func() (err error) {
			if to.draft == nil {
				if to.draft, err = r.adapter.options.Store.NewDraft(ctx, of); err != nil {
					return err
				}
			}
			return to.draft.Append(ctx, segment)
		})
	}
	to.recorder = sessionstore.NewRecorder(add, r.adapter.options.tuning.Recorder)
	return nil
}

// readStored returns the end of the stored history.
func (r *agentReplay) readStored(ctx context.Context) (end record.End, err error) {
	if !r.isStored {
		return end, nil
	}
	err = r.adapter.tasks.Guard("session store", func() (err error) {
		end, err = record.ReadEnd(r.adapter.options.Store.History(ctx, r.id))
		return err
	})
	return end, err
}

// Replay implements [backend.Host].
func (h *host) Replay(ctx context.Context, u backend.Update) error {
	r := h.replay
	if r.cause != backend.Load && r.cause != backend.Resume {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load or resume replays a history")
	}
	if err := r.endTurns(); err != nil {
		return err
	}
	if err := checkUpdate(u); err != nil {
		return err
	}
	return r.replayed.With(ctx, func(to *replayed) error {
		if h.gate.Phase() != gate.Opening {
			return backend.ErrClosed
		}
		if to.recorder == nil {
			if err := r.begin(ctx, to); err != nil {
				return err
			}
		}
		if r.shown.Load() {
			if err := r.show(ctx, u); err != nil {
				return err
			}
		}
		if !to.stored.Passed(u) || !to.children.Admits(u) {
			return nil
		}
		return to.recorder.Record(ctx, u)
	})
}

// take ends the replay and returns what was replayed. Its draft is to be added to the stored
// history.
func (r *agentReplay) take(ctx context.Context) (taken replayed, err error) {
	err = r.replayed.With(ctx, func(of *replayed) (err error) {
		if of.recorder != nil {
			err = of.recorder.Close(ctx)
		}
		taken = *of
		return err
	})
	return taken, err
}

// drop discards what was replayed, unless it has become a part of the session's history.
func (r *agentReplay) drop() {
	ctx, cancel := tasks.Commit(r.adapter.base)
	defer cancel()
	taken, err := r.take(ctx)
	if taken.draft != nil {
		err = errors.Join(err, r.adapter.tasks.Guard("session store", func() error {
			return taken.draft.Discard(ctx)
		}))
	}
	if err != nil {
		r.adapter.log.Warn("cannot discard the replayed history", "session", r.id, "error", err)
	}
}
