package proxy

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// updateMode says what to do with the child's updates.
type updateMode int

const (
	live           updateMode = iota // pass them on
	replaying                        // pass them on as the history that a load shows
	skipping                         // drop them until the record ends, then replay that and them
	discarding                       // drop them: they are a history that was not asked for
	discardingLate                   // drop them also after the response, until discardReplay
)

// updateFilter decides what happens to the updates that the child sends while its session is
// opened. It keeps the latest state update of each kind, which is passed on once the session is
// open.
type updateFilter struct {
	mu       sync.Mutex
	mode     updateMode
	record   record // what is left of it in skipping
	replayed int    // other updates so far, unless the mode is live or skipping
	states   []backend.Update
	err      error // why the record could not be shown
}

// record identifies the end of a stored conversation: its last prompt, without white space, and how
// often that prompt occurs in the conversation. The zero value means that nothing is stored.
type record struct {
	prompt string
	times  int
}

// readRecord returns the end of a stored history.
func readRecord(history iter.Seq2[backend.Update, error]) (r record, err error) {
	if history == nil {
		return r, nil
	}
	prompts := make(map[string]int)
	asking := ""
	for u, err := range history {
		if err != nil {
			return r, err
		}
		said, ok := parseUtterance(u)
		switch {
		case ok && said.speaker == speakerUser:
			asking += withoutSpace(said.text)
			r.prompt = asking
		case ok && asking != "":
			prompts[asking]++
			asking = ""
		}
	}
	if asking != "" {
		prompts[asking]++
	}
	r.times = prompts[r.prompt]
	return r, nil
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// skip counts a prompt that an agent replays, and reports whether it comes after the record. It
// does not recognize prompts of several blocks; with those it never reports true.
func (r *record) skip(said utterance) (over bool) {
	if said.speaker != speakerUser {
		return false
	}
	if over = r.times == 0; !over && withoutSpace(said.text) == r.prompt {
		r.times--
	}
	return over
}

// isState reports whether only the latest update of a kind counts.
func isState(kind sessionstore.Kind) bool {
	return kind.IsState() || kind == sessionstore.SessionInfoUpdate
}

// set sets the mode and forgets earlier updates.
func (f *updateFilter) set(mode updateMode) { f.end(mode) }

// end sets the mode. It returns how many updates of the history came before, and the latest states.
func (f *updateFilter) end(next updateMode) (replayed int, states []backend.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	replayed, states = f.replayed, f.states
	f.mode, f.replayed, f.states = next, 0, nil
	return replayed, states
}

// skip sets the mode skipping.
func (f *updateFilter) skip(r record) {
	f.set(skipping)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.err = r, nil
}

// fail drops the rest of a replay because of an error.
func (f *updateFilter) fail(err error) {
	f.set(discarding)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// failure returns the error of the last replay that began with skip.
func (f *updateFilter) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// take returns the mode for an update, and whether the filter keeps it. It counts an update that is
// part of a history. For the first update after the record, and only then, it returns skipping.
func (f *updateFilter) take(u backend.Update) (mode updateMode, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mode == live:
	case f.mode == skipping && !isState(u.Kind):
		if said, ok := parseUtterance(u); !ok || !f.record.skip(said) {
			return discarding, false
		}
		f.mode, f.replayed = replaying, 1
		return skipping, false
	case !isState(u.Kind):
		f.replayed++
	case f.mode != discardingLate:
		f.states = slices.DeleteFunc(f.states, func(before backend.Update) bool {
			return before.Kind == u.Kind
		})
		f.states = append(f.states, u)
		return f.mode, true
	}
	return f.mode, false
}

// state returns the mode, and the number of updates of a history so far.
func (f *updateFilter) state() (mode updateMode, replayed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mode, f.replayed
}

// handleUpdate passes on an update of cs. t is the turn it belongs to, or nil. It drops updates of
// a turn that was answered without waiting for the child.
func (s *session) handleUpdate(
	ctx context.Context, cs *childSession, t *turn, u backend.Update,
) error {
	u, ok := withoutContext(u)
	profile := s.proxy.profile()
	if !ok || t == nil && isBanner(profile, u) {
		return nil
	}
	u = interpret(profile, u)
	mode, kept := s.updates.take(u)
	switch {
	case kept:
		return nil
	case mode == skipping:
		if err := s.replayRecord(ctx); err != nil {
			return err
		}
		return s.host.Replay(ctx, u, backend.FromBackend)
	case mode == replaying:
		return s.host.Replay(ctx, u, backend.FromBackend)
	case mode != live && !isState(u.Kind):
		return nil
	case mode == live:
		cs.settings.update(u)
		s.noteDenial(cs.child, u)
	}
	if t != nil && u.Kind != sessionstore.SubagentUpdate { // a subagent may outlive the turn
		return s.showUpdate(ctx, t.updates, u)
	}
	return s.showUpdate(ctx, s.host, u)
}

// handleSubagentUpdate passes on an update of a subagent, which may come in turns and after them.
func (s *session) handleSubagentUpdate(
	ctx context.Context, cs *childSession, from *subagent, u backend.Update,
) error {
	inChild := sessionstore.InChild(from.key, u)
	switch mode, _ := s.updates.take(inChild); mode {
	case live:
		s.noteDenial(cs.child, u)
		return s.host.Update(ctx, inChild)
	case replaying:
		return s.host.Replay(ctx, inChild, backend.FromBackend)
	}
	return nil
}

// showUpdate shows the client an update. The commands of the roots are added to those of the child.
func (s *session) showUpdate(ctx context.Context, to backend.Updates, u backend.Update) error {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		return s.announceChild(ctx, to, u.Raw)
	}
	return to.Update(ctx, u)
}

// pingMethod is a request that the child rejects. Its answer comes after everything that the child
// has already written.
const pingMethod = "_acp-agent/ping"

// replayRecord shows the client the stored history, before the rest of the agent's replay. If it
// cannot, it makes the load fail.
func (s *session) replayRecord(ctx context.Context) error {
	for u, err := range sessionstore.Joined(s.history) {
		if err == nil {
			err = s.host.Replay(ctx, u, backend.FromStore)
		}
		if err != nil {
			s.updates.fail(err)
			return err
		}
	}
	return nil
}

// discardReplay drops a late replay and waits until it has ended, so that it is not mistaken
// for part of the turn that is about to begin.
func (s *session) discardReplay(ctx context.Context, cs *childSession) {
	if mode, _ := s.updates.state(); mode == discardingLate {
		s.awaitReplay(ctx, cs)
		s.updates.set(live)
	}
}

// awaitReplay waits until a late replay has ended. The child writes the rest of a replay while it
// waits for input, so the replay has ended when the child answers a request without having replayed
// more.
func (s *session) awaitReplay(ctx context.Context, cs *childSession) {
	ctx, cancel := context.WithTimeoutCause(ctx, cs.child.limits.EndTimeout, errNoAnswer)
	defer cancel()
	for before := -1; ; {
		_, now := s.updates.state()
		if now == before {
			return
		}
		before = now
		_, err := cs.child.request(ctx, pingMethod, backend.Raw(`{}`))()
		if err != nil && responseError(err) == nil {
			cs.child.log.Debug("the agent may still replay a conversation", "error", err)
			return
		}
	}
}

// interpret returns the update that an update of the agent stands for.
func interpret(p profiles.Profile, u backend.Update) backend.Update {
	if p.Replay.ModeNotice == "" || u.Kind != sessionstore.AgentMessageChunk {
		return u
	}
	said, _ := parseUtterance(u)
	mode, changes := strings.CutPrefix(said.text, p.Replay.ModeNotice)
	if !changes || mode == "" || strings.ContainsAny(mode, " \n") {
		return u
	}
	return backend.NewUpdate(sdk.SessionUpdate{
		CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(mode)}})
}

// isBanner reports whether an update outside turns is a message without meaning.
func isBanner(p profiles.Profile, u backend.Update) bool {
	if p.Replay.Banner == "" || u.Kind != sessionstore.AgentMessageChunk {
		return false
	}
	said, _ := parseUtterance(u)
	return strings.HasPrefix(said.text, p.Replay.Banner)
}
