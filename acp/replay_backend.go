package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/gate"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// agentReplay is a history that the backend replays while it opens a session for a load or resume.
// What the store has of it is passed over: the stored history is shown instead, and nothing
// replaces it. To save memory, the rest is stored in a draft, which is added to the stored history
// when the load is stored.
type agentReplay struct {
	opening  *opening
	endTurns func() error // opening.endTurns, once

	// Guarded by beginUpdate:
	stored   *record.End
	shows    bool                   // it is shown as it comes
	recorder *sessionstore.Recorder // nil unless the backend replays a history
	draft    sessionstore.Draft     // the recorder's until it is closed; nil if there is nothing to add
	children *record.ChildLimit
}

func newReplay(ctx context.Context, o *opening) *agentReplay {
	return &agentReplay{opening: o, endTurns: sync.OnceValue(func() error {
		return o.endTurns(ctx)
	})}
}

// begin begins to record what is replayed.
func (r *agentReplay) begin(ctx context.Context) (err error) {
	if !r.opening.source.Unstored {
		if r.stored, err = r.readStored(ctx); err != nil {
			return err
		}
	}
	r.shows = r.stored == nil && r.opening.cause == backend.Load
	r.children = r.opening.agent.newChildLimit()
	r.recorder = sessionstore.NewRecorder(r.append, r.opening.agent.options.tuning.Recorder)
	return nil
}

// readStored returns the end of the stored history.
func (r *agentReplay) readStored(ctx context.Context) (end *record.End, err error) {
	err = r.opening.agent.tasks.Guard("session store", func() (err error) {
		end, err = record.ReadEnd(r.opening.agent.options.Store.History(ctx, r.opening.source.ID))
		return err
	})
	return end, err
}

// append appends a segment to the draft.
func (r *agentReplay) append(ctx context.Context, segment []sessionstore.Update) error {
	return r.opening.agent.tasks.Guard("session store", func() (err error) {
		if r.draft == nil {
			var stored sessionstore.ID
			if !r.opening.source.Unstored {
				stored = r.opening.source.ID
			}
			if r.draft, err = r.opening.agent.options.Store.NewDraft(ctx, stored); err != nil {
				return err
			}
		}
		return r.draft.Append(ctx, segment)
	})
}

// discard discards the draft, unless it has become a part of a session's history.
func (r *agentReplay) discard(ctx context.Context) error {
	err := r.recorder.Close(ctx)
	if r.draft == nil {
		return err
	}
	return errors.Join(err, r.opening.agent.tasks.Guard("session store", func() error {
		return r.draft.Discard(ctx)
	}))
}

// Replay implements [backend.Host].
func (s *session) Replay(ctx context.Context, u backend.Update) error {
	r := s.replay
	if r == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load or resume replays a history")
	}
	if err := r.endTurns(); err != nil {
		return err
	}
	if err := checkUpdate(u); err != nil {
		return err
	}
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	if s.gate.Phase() != gate.Opening {
		return backend.ErrClosed
	}
	if r.recorder == nil {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if r.shows {
		r.opening.pace.wait(ctx)
		if err := s.showTo(ctx, r.opening.from, u, asItComes); err != nil {
			return err
		}
	}
	if !r.stored.Passed(u) || !r.children.Admits(u) {
		return nil
	}
	return r.recorder.Record(ctx, u)
}

// takeReplayed returns what was replayed and is to be added to the stored history, or nil.
func (s *session) takeReplayed(ctx context.Context) (sessionstore.Draft, error) {
	if err := s.beginUpdate(ctx); err != nil {
		return nil, err
	}
	defer s.endUpdate()
	r := s.replay
	if r.recorder == nil {
		return nil, nil
	}
	if err := r.recorder.Close(ctx); err != nil {
		return nil, err
	}
	return r.draft, nil
}

// isReplayCurrent reports whether the stored history is the one whose end the replay was compared
// with. Nothing is ever taken from a history, so one of the same size is the same.
func (s *session) isReplayCurrent(ctx context.Context) (bool, error) {
	if err := s.beginUpdate(ctx); err != nil {
		return false, err
	}
	defer s.endUpdate()
	now, err := s.replay.readStored(ctx)
	before := s.replay.stored
	if before == nil || now == nil {
		return before == now, err
	}
	return before.Size == now.Size, err
}

// dropReplayed discards what was replayed, unless it has become a part of the session's history.
func (s *session) dropReplayed(ctx context.Context) error {
	if s.replay == nil || s.beginUpdate(ctx) != nil {
		return nil
	}
	defer s.endUpdate()
	if s.replay.recorder == nil {
		return nil
	}
	return s.replay.discard(ctx)
}
