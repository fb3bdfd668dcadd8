package backend

import (
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// NewCopy describes a session that continues another one, whose history its agent does not have: it
// has the folders of the source, and a mark in its title.
func NewCopy(source sessionstore.Session, mark string) sessionstore.Session {
	n := sessionstore.Session{ID: sessionstore.NewID(), Agent: source.Agent, Keys: source.Keys,
		State: source.State}
	if source.Title != "" {
		n.Title = text.Line(source.Title+" ("+mark+")", 200)
	}
	if source.Agent.Profile != "" {
		// The state names the agent's own session, which is the source's. Without it the agent gets
		// a new one, and is told the conversation.
		n.State = []byte("{}")
	}
	return n
}
