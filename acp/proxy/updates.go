package proxy

import (
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// updateMode says what to do with updates of the child.
type updateMode int

const (
	live       updateMode = iota // pass them on
	replaying                    // pass them on as the history of the agent
	discarding                   // drop them, such as a history that was not asked for
)

// updateFilter decides what happens to the updates that the child sends while a session is opened
// in it. It passes all on the rest of the time. It keeps the latest state update of each kind,
// which is passed on once the session is open.
type updateFilter struct {
	mode     updateMode
	replayed int // other updates so far, unless the mode is live
	states   []backend.Update
}

// take returns what to do with an update: a state that the filter keeps is not passed on. It counts
// other updates that are part of a history.
func (f *updateFilter) take(u backend.Update) updateMode {
	switch {
	case f.mode == live:
	case !u.Kind.IsState() && u.Kind != sessionstore.SessionInfoUpdate:
		f.replayed++
	default:
		f.states = slices.DeleteFunc(f.states, func(before backend.Update) bool {
			return before.Kind == u.Kind
		})
		f.states = append(f.states, u)
		return discarding
	}
	return f.mode
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
	return p.Replay.Banner != "" && u.Kind == sessionstore.AgentMessageChunk &&
		strings.HasPrefix(backend.ChunkText(u), p.Replay.Banner)
}
