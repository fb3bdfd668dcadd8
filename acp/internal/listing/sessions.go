// Package listing finds the sessions of an agent: those in the store, and those that only the
// backend knows (see [backend.Foreign]). Another agent's sessions are refused.
//
// It opens no session, and knows neither active sessions nor their turns.
//
// # Locks
//
// importRun.mu is held while sessions are stored. imports.mu is held for a few statements, and
// before that of the group of tasks.
package listing

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Options configure [Sessions].
type Options struct {
	Store sessionstore.Store
	// Foreign is the backend if it keeps sessions itself, otherwise nil.
	Foreign backend.Foreign
	// OnlyKnown says that the client has no grant for the backend's own sessions. For it only the
	// sessions on record exist.
	OnlyKnown bool
	// Owner returns the agent that the sessions belong to, which is known once it is initialized.
	Owner func() sessionstore.Agent
	// AgentCommand returns a command line that runs the agent of a session.
	AgentCommand func(sessionstore.Agent) string

	Base  context.Context // ends with the connection
	Tasks *tasks.Group
	Log   *slog.Logger
	Times Times
}

// Times are the delays and the limit of imports. Only tests change them.
type Times struct {
	// Every is how old an import may be before a list begins another one. Grace is how long that
	// list waits before it is answered from the store, Wait how long if the store has none of the
	// sessions. Timeout is how long the backend may take.
	Every, Grace, Wait, Timeout time.Duration
	// Max is how many sessions of the backend are imported.
	Max int
}

func (t Times) withDefaults() Times {
	return Times{cmp.Or(t.Every, 10*time.Second), cmp.Or(t.Grace, 50*time.Millisecond),
		cmp.Or(t.Wait, 2*time.Second), cmp.Or(t.Timeout, time.Minute), cmp.Or(t.Max, 100_000)}
}

// Sessions are the sessions of one agent: those in the store, and those that only the backend
// knows.
type Sessions struct {
	Options
	imports imports
}

// New returns the sessions of an agent.
func New(o Options) *Sessions {
	if o.Foreign != nil && o.OnlyKnown {
		o.Foreign = onRecord{o.Foreign}
	}
	o.Times = o.Times.withDefaults()
	return &Sessions{Options: o, imports: imports{runs: make(map[workspace.Dir]*importRun),
		running: make(chan struct{}, runningImports)}}
}

// onRecord is a backend's own sessions as a client without the grant for them sees them: only those
// that are in the store exist. Its list only updates these; see [sessionstore.Imports.Import].
type onRecord struct{ backend.Foreign }

// State implements [backend.Foreign].
func (onRecord) State(string) []byte { return nil }

// List returns a page of the sessions that match a query. cwd is its working directory, or the zero
// Dir for all. The first page begins an import of the backend's own sessions. List waits for it
// if the store may have none of them yet.
func (s *Sessions) List(
	ctx context.Context, cwd workspace.Dir, query sessionstore.Query,
) (sessionstore.Page, error) {
	first := query.Cursor == ""
	run := s.imports.latest(cwd)
	if first && s.Foreign != nil {
		run = s.imports.begin(s, cwd)
		run.wait(ctx, time.Now().Add(s.Times.Grace)) // a backend that is already running is fast
	}
	page, err := s.Store.List(ctx, query)
	if err == nil && run != nil && (first || page.Next == "") &&
		!slices.ContainsFunc(page.Sessions, run.isRefresh) {
		run.waitForPage(ctx, first)
		page, err = s.Store.List(ctx, query)
	}
	page.Sessions = slices.DeleteFunc(page.Sessions, func(stored sessionstore.Session) bool {
		return s.hides(ctx, stored)
	})
	return page, err
}

// StateKey returns the backend's own id of the session that saved state, or "".
func (s *Sessions) StateKey(state []byte) string {
	if s.Foreign != nil && len(state) > 0 {
		return s.Foreign.Key(state)
	}
	return ""
}

// Pass passes a request about a stored session on to an agent that serves it, and returns the
// result of the response, or nil. The store is authoritative, so a failure of the agent is only
// logged.
func (s *Sessions) Pass(
	ctx context.Context, method string, stored sessionstore.Session, params strictjson.Object,
) json.RawMessage {
	if s.Foreign == nil || stored.StateKey == "" {
		return nil
	}
	result, err := s.Foreign.CallStored(ctx, method, stored.State,
		params.Without(protocol.SessionID))
	if err != nil {
		s.Log.Warn("the agent rejected a request about a stored session", "method", method,
			"session", stored.ID, "error", err)
		return nil
	}
	if !strictjson.IsObject(result) {
		return nil
	}
	return result
}

// Discard makes the backend delete its own session with the given state, which another one of the
// session with the given id has replaced.
func (s *Sessions) Discard(ctx context.Context, id sessionstore.ID, state []byte) {
	if s.Foreign == nil || state == nil {
		return
	}
	_, err := s.Foreign.CallStored(ctx, protocol.SessionDelete, state, backend.Raw(`{}`))
	if err != nil {
		s.Log.Warn("the agent did not delete the session that was replaced", "session", id,
			"error", err)
	}
}

// maxTitle is the length of the longest title that a client has not set, in characters.
const maxTitle = 80

// TitleLine returns a text as a title that no client has set: one line of limited length.
func TitleLine(s string) string { return text.Line(s, maxTitle) }
