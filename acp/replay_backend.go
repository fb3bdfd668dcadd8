package acp

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// replay is a history that the backend replays while it opens a session for a load or resume. What
// the store has of it is passed over: the stored history is shown instead, and nothing replaces it.
// To save memory, the rest is stored in a draft, which is added to the stored history when the load
// is stored.
type replay struct {
	agent   *agent
	id      sessionstore.ID             // see Histories.NewDraft; "" if the store does not have the session
	stop    func(context.Context) error // ends the running turn
	pace    pace
	loads   bool        // it is a load, not a resume
	loading *connection // of the client that loads; nil if the session is opened in a turn

	// Guarded by beginUpdate:
	stored   *storedEnd
	shows    bool                   // it is shown as it comes
	recorder *sessionstore.Recorder // nil unless the backend replays a history
	draft    sessionstore.Draft     // the recorder's until it is closed; nil if there is nothing to add
	children *childLimit
}

// newReplay returns the replay of a session that is opened, nil for a new one and a fork.
func newReplay(a *agent, o opening) *replay {
	if o.activation.Stop == nil {
		return nil
	}
	r := &replay{agent: a, stop: o.activation.Stop, pace: o.pace, loading: o.loading,
		loads: o.activation.Cause == backend.Load}
	if !o.foreign {
		r.id = o.stored
	}
	return r
}

// begin begins to record what is replayed.
func (r *replay) begin(ctx context.Context) (err error) {
	if r.id != "" {
		if r.stored, err = r.readStored(ctx); err != nil {
			return err
		}
	}
	r.shows = r.stored == nil && r.loads
	r.children = r.agent.newChildLimit()
	r.recorder = sessionstore.NewRecorder(r.append, r.agent.options.tuning.Recorder)
	return nil
}

// readStored returns the end of the stored history.
func (r *replay) readStored(ctx context.Context) (end *storedEnd, err error) {
	err = r.agent.tasks.Guard("session store", func() (err error) {
		end, err = readStoredEnd(r.agent.options.Store.History(ctx, r.id))
		return err
	})
	return end, err
}

// append appends a segment to the draft.
func (r *replay) append(ctx context.Context, segment []sessionstore.Update) error {
	return r.agent.tasks.Guard("session store", func() (err error) {
		if r.draft == nil {
			if r.draft, err = r.agent.options.Store.NewDraft(ctx, r.id); err != nil {
				return err
			}
		}
		return r.draft.Append(ctx, segment)
	})
}

// discard discards the draft, unless it has become a part of a session's history.
func (r *replay) discard(ctx context.Context) error {
	err := r.recorder.Close(ctx)
	if r.draft == nil {
		return err
	}
	return errors.Join(err, r.agent.tasks.Guard("session store", func() error {
		return r.draft.Discard(ctx)
	}))
}

// Replay implements [backend.Host].
func (s *session) Replay(ctx context.Context, u backend.Update) error {
	r := s.replay
	if r == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "only a load or resume replays a history")
	}
	if err := r.stop(ctx); err != nil {
		return err
	}
	if err := checkUpdate(u); err != nil {
		return err
	}
	if err := s.beginUpdate(ctx); err != nil {
		return err
	}
	defer s.endUpdate()
	if s.at() != isOpening {
		return backend.ErrClosed
	}
	if r.recorder == nil {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if r.shows {
		r.pace.wait(ctx)
		if err := s.showTo(ctx, r.loading, u, asItComes); err != nil {
			return err
		}
	}
	if !r.stored.passed(u) || !r.children.admits(u) {
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
	return before.size == now.size, err
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

// storedEnd finds the end of the stored history in one that the backend replays: its last prompt,
// as often as the stored history has it. A backend may replay prompts in other pieces, leave some
// out, or replay another history. Then the end is not found, and nothing counts as new.
type storedEnd struct {
	turnReader        // of what is replayed
	size       int    // of the stored history, in bytes
	last       string // the hash of the last prompt
	times      int    // how often it was not replayed yet
	over       bool   // what is replayed comes after the end
}

// readStoredEnd returns the end of a stored history, or nil if that is empty.
func readStoredEnd(history iter.Seq2[sessionstore.Update, error]) (*storedEnd, error) {
	var (
		end    storedEnd
		reader turnReader
	)
	times := make(map[string]int)
	note := func(prompt string) {
		if prompt != "" {
			end.last = prompt
			times[prompt]++
		}
	}
	for u, err := range history {
		if err != nil {
			return nil, err
		}
		end.size += len(u.Raw)
		note(reader.read(u))
	}
	if end.size == 0 {
		return nil, nil
	}
	note(reader.end())
	end.times = times[end.last]
	return &end, nil
}

// passed reports whether u, the next update that the backend replays, comes after the end.
func (e *storedEnd) passed(u sessionstore.Update) bool {
	if e == nil {
		return true
	}
	begins := u.Kind == sessionstore.UserMessageChunk && !e.open
	if prompt := e.read(u); prompt != "" && prompt == e.last {
		e.times--
	}
	e.over = e.over || begins && e.times <= 0 && !e.own
	return e.over
}

// turnReader finds the prompts in a history. Prompts that follow each other immediately are one.
type turnReader struct {
	said hash.Hash // of what was read of a prompt, without white space
	open bool      // the last update was part of a prompt
	own  bool      // the last prompt is a command of the adapter, unknown to the backend
}

// read reads the next update, and returns the hash of the prompt that has ended before it, or "".
func (r *turnReader) read(u sessionstore.Update) (ended string) {
	if u.Kind.IsState() {
		return ""
	}
	if u.Kind != sessionstore.UserMessageChunk {
		return r.end()
	}
	said := backend.ChunkText(u)
	if !r.open {
		r.said, r.open = sha256.New(), true
		r.own = backend.IsOwnCommand(said, backend.AdapterCommands())
	}
	for word := range strings.FieldsSeq(said) {
		_, _ = io.WriteString(r.said, word)
	}
	return ""
}

// end ends the prompt that is being read, and returns its hash, or "" if it is the adapter's.
func (r *turnReader) end() (ended string) {
	if r.open && !r.own {
		ended = string(r.said.Sum(nil))
	}
	r.open = false
	return ended
}
