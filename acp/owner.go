package acp

import (
	"context"

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
				Expecting(commandOf(s.Agent)).Hinting(transferHint(id, a.init.owner())))
	}
	return s, nil
}

// commandOf returns a command line that runs the agent of a session.
func commandOf(owner sessionstore.Agent) string {
	switch owner.Kind {
	case "proxy":
		return "acp-agent -- " + owner.Profile
	case "model":
		return "acp-agent --model NAME"
	}
	return "acp-agent"
}

// transferHint returns how to continue a session with another agent.
func transferHint(id sessionstore.ID, to sessionstore.Agent) string {
	agent := "--to " + text.ShellWord(to.Kind)
	if to.Kind == "proxy" {
		agent = "-- " + to.Profile
	}
	return "to continue a copy of it with this agent, run: acp-agent sessions transfer " +
		text.ShellWord(string(id)) + " " + agent
}
