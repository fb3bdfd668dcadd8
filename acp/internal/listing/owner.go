package listing

import (
	"context"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Stored returns a stored session, which must belong to this agent. Its id differs from the
// client's id if the client uses the backend's own id.
func (s *Sessions) Stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	stored, err := s.Store.Get(ctx, id)
	if isUnknown(err) {
		stored, err = s.storedAs(ctx, id, err)
	}
	if err != nil {
		return stored, err
	}
	if stored.Agent != s.Owner() {
		return stored, strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, string(id), strictjson.OtherAgent).
				Expecting(s.AgentCommand(stored.Agent)).Hinting(s.transferHint(id)))
	}
	if s.hides(ctx, stored) {
		return stored, &sessionstore.NotFoundError{ID: id}
	}
	return stored, nil
}

// isUnknown reports whether the store does not have a session.
func isUnknown(err error) bool { return errors.As(err, new(*sessionstore.NotFoundError)) }

// hides reports whether a stored session is the backend's own, for which the client has no grant:
// it was imported while there was one, and nothing has been said in it here.
func (s *Sessions) hides(ctx context.Context, stored sessionstore.Session) bool {
	return s.OnlyKnown && s.OnlyBackendKnows(ctx, Openable{Session: stored})
}

// storedAs returns the stored session for which the backend has the given id, or unknown.
func (s *Sessions) storedAs(
	ctx context.Context, id sessionstore.ID, unknown error,
) (sessionstore.Session, error) {
	state := s.foreignState(id)
	if state == nil {
		return sessionstore.Session{}, unknown
	}
	own, err := s.Store.Named(ctx, s.Owner(), s.Foreign.Key(state))
	if err == nil {
		return s.Store.Get(ctx, own)
	}
	if isUnknown(err) {
		err = unknown
	}
	return sessionstore.Session{}, err
}

// transferHint returns how to continue a session with this agent.
func (s *Sessions) transferHint(id sessionstore.ID) string {
	owner := s.Owner()
	to := "--to " + text.ShellWord(owner.Kind)
	if owner.Profile != "" {
		_, to, _ = strings.Cut(s.AgentCommand(owner), " ")
		if name, ok := strings.CutPrefix(to, "--agent "); ok {
			to = "--to " + name
		}
	}
	return "to continue a copy of it with this agent, run: acp-agent sessions transfer " +
		text.ShellWord(string(id)) + " " + to
}
