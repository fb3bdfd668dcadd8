package model

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// modelSession is one activation. Its turns do not overlap.
type modelSession struct {
	backend *modelBackend
	host    backend.Host
	opened  time.Time
	client  instructions

	mu       sync.Mutex // settings can be changed during a turn
	settings settings
	saving   sync.Mutex // held while they are saved and sent

	conversation lockedConversation
	notes        toolNotes
	announced    backend.Commands // used by the turn only
}

// Open opens a session. For a load, resume or fork it restores what the model knew from the stored
// history, and the settings, except that edits need permission again.
func (b *modelBackend) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	set := b.restoreSettings(a.State)
	if a.State == nil { // the history is from another agent
		set.Foreign = math.MaxInt
	}
	known, length, err := restore(ctx, a, set.Foreign)
	if err != nil {
		return nil, backend.Opened{}, err
	}
	set.Foreign = min(set.Foreign, length)
	var p struct{ SystemPrompt instructions }
	_ = json.Unmarshal(a.Params, &p) // the adapter has checked them
	s := &modelSession{
		backend: b, host: h, opened: time.Now(), settings: set,
		client:       p.SystemPrompt,
		conversation: lockedConversation{known: known},
		notes:        toolNotes{broken: map[string]bool{}, noted: map[string]bool{}},
	}
	if a.State == nil && length > 0 {
		if _, err := s.change(ctx, nil); err != nil {
			return nil, backend.Opened{}, err
		}
	}
	if set.Mode == acceptEdits {
		// The mode was chosen for what the user was doing then, perhaps with other roots.
		if err := s.setModeTo(ctx, ask); err != nil {
			return nil, backend.Opened{}, err
		}
	}
	if err := s.announceCommands(ctx, h); err != nil {
		return nil, backend.Opened{}, err
	}
	return s, backend.Opened{Result: s.describeSettings()}, nil
}

// Prompt answers one prompt.
func (s *modelSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	return func() (backend.Raw, error) {
		_, chosen := s.current()
		t := &modelTurn{
			modelSession: s, updates: recorded{u, &s.conversation}, endpoint: chosen,
			instead: map[*endpoint]*endpoint{},
			loops:   loops{ends: map[[sha256.Size]byte]int{}},
		}
		response, err := t.run(ctx, params)
		if ctx.Err() != nil || errors.Is(err, backend.ErrCancelled) {
			return t.withUsage(backend.Stopped(sdk.StopReasonCancelled)), nil
		}
		return t.withUsage(response), err
	}
}

func (*modelSession) Notify(context.Context, string, backend.Raw) {}

// Cancel does nothing: cancelling ends the turn's context.
func (*modelSession) Cancel(backend.Raw)          {}
func (*modelSession) Close(context.Context) error { return nil }
