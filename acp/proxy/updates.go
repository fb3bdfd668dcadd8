package proxy

import (
	"context"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// updateMode says what to do with the child's updates.
type updateMode int

const (
	live       updateMode = iota // pass them on
	replaying                    // pass them on as the history of the agent
	discarding                   // drop them: they are a history that was not asked for
)

// updateFilter decides what happens to the updates that the child sends while its session is
// opened. It keeps the latest state update of each kind, which is passed on once the session is
// open.
type updateFilter struct {
	mu       sync.Mutex
	mode     updateMode
	replayed int // other updates so far, unless the mode is live
	states   []backend.Update
}

// isState reports whether only the latest update of a kind counts.
func isState(kind sessionstore.Kind) bool {
	return kind.IsState() || kind == sessionstore.SessionInfoUpdate
}

// set sets the mode and forgets earlier updates.
func (f *updateFilter) set(mode updateMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode, f.replayed, f.states = mode, 0, nil
}

// end sets the mode to live. It returns how many updates of the history came before, and the latest
// states.
func (f *updateFilter) end() (replayed int, states []backend.Update) {
	f.mu.Lock()
	defer f.mu.Unlock()
	replayed, states = f.replayed, f.states
	f.mode, f.replayed, f.states = live, 0, nil
	return replayed, states
}

// take returns the mode for an update, and whether the filter keeps it. It counts an update that is
// part of a history.
func (f *updateFilter) take(u backend.Update) (mode updateMode, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.mode == live:
	case !isState(u.Kind):
		f.replayed++
	default:
		f.states = slices.DeleteFunc(f.states, func(before backend.Update) bool {
			return before.Kind == u.Kind
		})
		f.states = append(f.states, u)
		return f.mode, true
	}
	return f.mode, false
}

// soFar returns the number of updates of a history so far.
func (f *updateFilter) soFar() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replayed
}

// handleUpdate passes on an update of cs. p is the prompt in whose turn it came, or nil. It drops
// updates of a turn that was answered without waiting for the child.
func (s *session) handleUpdate(
	ctx context.Context, cs *childSession, p *prompt, u backend.Update,
) error {
	u, ok := withoutContext(u)
	profile := s.proxy.profile()
	if !ok || p == nil && isBanner(profile, u) {
		return nil
	}
	u = interpret(profile, u)
	mode, kept := s.updates.take(u)
	switch {
	case kept:
		return nil
	case mode == replaying:
		return s.host.Replay(ctx, u)
	case mode != live && !isState(u.Kind):
		return nil
	case mode == live:
		if mode := strictjson.FindText(u.Raw, "update", "currentModeId"); mode != "" &&
			u.Kind == sessionstore.CurrentModeUpdate {
			cs.keepSetting(protocol.SessionSetMode,
				backend.Encode(map[string]string{"modeId": mode}))
		}
		s.hints.noteDenial(cs.child, u)
	}
	if p != nil && u.Kind != sessionstore.SubagentUpdate { // a subagent may outlive the turn
		return s.showUpdate(ctx, p.updates, u)
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
		s.hints.noteDenial(cs.child, u)
		return s.host.Update(ctx, inChild)
	case replaying:
		return s.host.Replay(ctx, inChild)
	}
	return nil
}

// showUpdate shows the client an update. The commands of the roots are added to those of the child.
func (s *session) showUpdate(ctx context.Context, to backend.Updates, u backend.Update) error {
	if u.Kind == sessionstore.AvailableCommandsUpdate {
		return s.commands.announceChild(ctx, s.host.Catalog(), to, u.Raw)
	}
	return to.Update(ctx, u)
}

// finishReplay ends the replay, passes on the latest states, and returns how many updates were
// replayed. Usually the response has just been read, and it runs on the read loop.
func (s *session) finishReplay(ctx context.Context) (replayed int) {
	replayed, states := s.updates.end()
	for _, state := range states {
		if err := s.showUpdate(ctx, s.host, state); err != nil {
			s.proxy.log.Debug("cannot pass on a state of the agent", "kind", state.Kind,
				"error", err)
		}
	}
	return replayed
}

// interpret returns the update that an update of the agent stands for.
func interpret(p profiles.Profile, u backend.Update) backend.Update {
	if p.Replay.ModeNotice == "" || u.Kind != sessionstore.AgentMessageChunk {
		return u
	}
	mode, changes := strings.CutPrefix(backend.ChunkText(u), p.Replay.ModeNotice+" ")
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
	return strings.HasPrefix(backend.ChunkText(u), p.Replay.Banner)
}
