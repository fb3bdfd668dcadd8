// Package replay records the history that an agent replays while it opens a session.
package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Options configure a [Replay].
type Options struct {
	Cause backend.Cause
	// Stored is the session that is stored, "" if only the agent knew it.
	Stored sessionstore.ID
	// Show shows the client of a load an update.
	Show      func(context.Context, backend.Update) error
	Store     sessionstore.Histories
	Recorder  sessionstore.RecorderOptions
	Subagents *record.SubagentLimit
	Tasks     *tasks.Group
	Log       *slog.Logger // of the session
}

// Replay is a history that the agent replays for a load or resume. What the store has of it is
// passed over: the stored history is shown instead, and nothing replaces it. To save memory, the
// rest is stored in a draft, which is added to the stored history when the load is stored.
type Replay struct {
	options  Options
	shown    atomic.Bool
	replayed tasks.Mutex[replayed]
}

// replayed is what the agent has replayed so far.
type replayed struct {
	over     bool
	stored   end
	recorder *sessionstore.Recorder // nil unless the agent replays a history
	draft    sessionstore.Draft     // the recorder's until it is closed; nil if there is nothing to add
}

// New returns a replay in which nothing was replayed yet.
func New(o Options) *Replay { return &Replay{options: o, replayed: tasks.NewMutex(replayed{})} }

// Shown reports whether the client was shown the history as it came.
func (r *Replay) Shown() bool { return r.shown.Load() }

// Add takes the next update of the history.
func (r *Replay) Add(ctx context.Context, u backend.Update) error {
	o := r.options
	if o.Cause != backend.Load && o.Cause != backend.Resume {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load or resume replays a history")
	}
	return r.replayed.With(ctx, func(to *replayed) error {
		if to.over {
			return backend.ErrClosed
		}
		if to.recorder == nil {
			if err := r.begin(ctx, to); err != nil {
				return err
			}
		}
		if r.Shown() {
			if err := o.Show(ctx, u); err != nil {
				return err
			}
		}
		if !to.stored.passed(u) || !o.Subagents.Admits(u) {
			return nil
		}
		return to.recorder.Record(ctx, u)
	})
}

// begin begins to record what is replayed.
func (r *Replay) begin(ctx context.Context, to *replayed) (err error) {
	if to.stored, err = r.readStored(ctx); err != nil {
		return err
	}
	o := r.options
	r.shown.Store(to.stored.isEmpty() && o.Cause == backend.Load)
	add := func(ctx context.Context, segment []sessionstore.Update) error {
		return o.Tasks.Guard("session store", func() (err error) {
			if to.draft == nil {
				if to.draft, err = o.Store.NewDraft(ctx, o.Stored); err != nil {
					return err
				}
			}
			return to.draft.Append(ctx, segment)
		})
	}
	to.recorder = sessionstore.NewRecorder(add, o.Recorder)
	return nil
}

// readStored returns the end of the stored history.
func (r *Replay) readStored(ctx context.Context) (e end, err error) {
	if r.options.Stored == "" {
		return e, nil
	}
	err = r.options.Tasks.Guard("session store", func() (err error) {
		e, err = readEnd(r.options.Store.History(ctx, r.options.Stored))
		return err
	})
	return e, err
}

// Take ends the replay, and returns what is to be added to the stored history, nil if nothing is.
func (r *Replay) Take(ctx context.Context) (draft sessionstore.Draft, err error) {
	err = r.replayed.With(ctx, func(of *replayed) (err error) {
		of.over = true
		if of.recorder != nil {
			err = of.recorder.Close(ctx)
		}
		draft = of.draft
		return err
	})
	return draft, err
}

// Follows reports whether what was replayed still comes after the stored history: it does not if
// another process has added to that since.
func (r *Replay) Follows(ctx context.Context) (follows bool, err error) {
	err = r.replayed.With(ctx, func(of *replayed) error {
		now, err := r.readStored(ctx)
		// Only a last prompt is ever taken from a history.
		follows = now.size == of.stored.size && now.last == of.stored.last
		return err
	})
	return follows, err
}

// Drop discards what was replayed, unless it has become a part of the session's history.
func (r *Replay) Drop(ctx context.Context) {
	ctx, cancel := tasks.Commit(ctx)
	defer cancel()
	draft, err := r.Take(ctx)
	if draft != nil {
		err = errors.Join(err, r.options.Tasks.Guard("session store", func() error {
			return draft.Discard(ctx)
		}))
	}
	if err != nil {
		r.options.Log.Warn("cannot discard the replayed history", "error", err)
	}
}
