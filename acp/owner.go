package acp

import (
	"context"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// stored returns a stored session, which must belong to this agent. Its id differs from the
// client's id if the client uses the backend's own id.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.options.Store.Get(ctx, id)
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		s, err = a.storedAs(ctx, id, err)
	}
	if err != nil {
		return s, protocolError(err)
	}
	if s.Agent != a.init.owner() {
		return s, strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, string(id), strictjson.OtherAgent).
				Expecting(a.options.AgentCommand(s.Agent)).Hinting(a.transferHint(id)))
	}
	if a.hides(ctx, s) {
		return s, errUnknownSession(id)
	}
	return s, nil
}

// hides reports whether a stored session is the backend's own, for which the client has no grant:
// it was imported while there was one, and nothing has been said in it here.
func (a *agent) hides(ctx context.Context, s sessionstore.Session) bool {
	return !a.grants.Sessions && a.onlyBackendKnows(ctx, openable{Session: s})
}

// storedAs returns the stored session for which the backend has the given id, or unknown.
func (a *agent) storedAs(
	ctx context.Context, id sessionstore.ID, unknown error,
) (sessionstore.Session, error) {
	f := a.foreign()
	if f == nil || a.importer() == nil || len(id) > maxForeignID {
		return sessionstore.Session{}, unknown
	}
	state := f.State(string(id))
	if state == nil {
		return sessionstore.Session{}, unknown
	}
	own, err := a.importer().Named(ctx, a.init.owner(), f.Key(state))
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return sessionstore.Session{}, unknown
	}
	if err != nil {
		return sessionstore.Session{}, err
	}
	return a.options.Store.Get(ctx, own)
}

// transferHint returns how to continue a session with this agent.
func (a *agent) transferHint(id sessionstore.ID) string {
	owner := a.init.owner()
	to := "--to " + text.ShellWord(owner.Kind)
	if owner.Profile != "" {
		_, to, _ = strings.Cut(a.options.AgentCommand(owner), " ")
		if name, ok := strings.CutPrefix(to, "--agent "); ok {
			to = "--to " + name
		}
	}
	return "to continue a copy of it with this agent, run: acp-agent sessions transfer " +
		text.ShellWord(string(id)) + " " + to
}
