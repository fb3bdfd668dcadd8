package acp

import (
	"context"
	"strings"

	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// stored returns a stored session, which must belong to this agent.
func (a *agent) stored(ctx context.Context, id sessionstore.ID) (sessionstore.Session, error) {
	if err := a.initialized(ctx); err != nil {
		return sessionstore.Session{}, err
	}
	s, err := a.options.Store.Get(ctx, id)
	if err != nil {
		return s, protocolError(err)
	}
	if s.Agent != a.init.owner() {
		return s, strictjson.Refuse(
			strictjson.NewViolation(protocol.SessionID, string(id), strictjson.OtherAgent).
				Expecting(a.options.AgentCommand(s.Agent)).Hinting(a.transferHint(id)))
	}
	return s, nil
}

// transferHint returns how to continue a session with this agent.
func (a *agent) transferHint(id sessionstore.ID) string {
	owner := a.init.owner()
	to := "--to " + text.ShellWord(owner.Kind)
	if command := a.options.AgentCommand(owner); owner.Profile != "" {
		_, to, _ = strings.Cut(command, " ")
		to = strings.Replace(to, "--agent ", "--to ", 1)
	}
	return "to continue a copy of it with this agent, run: acp-agent sessions transfer " +
		text.ShellWord(string(id)) + " " + to
}
