package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// occasion is why a client is sent an update.
type occasion int

const (
	asItComes   occasion = iota // the backend has just sent it
	fromHistory                 // it was recorded, perhaps for another client
)

// takes reports whether the client is sent an update. A kind that nobody knows passes as it comes.
// Such a kind probably needs a capability, so from a history it is sent only to a client that
// declares one that nobody knows either.
func (c *clientCapabilities) takes(u backend.Update, when occasion) bool {
	_, of, isChild := u.Child()
	if isChild && !c.declares(protocol.Subagents) {
		return false
	}
	needs, known := of.Kind.Needs()
	switch {
	case needs != "":
		return c.declares(needs)
	case known || when == asItComes:
		return true
	}
	return c.unknown
}

// sendUpdate sends a's client an update of a session, if the client takes it.
func (a *agent) sendUpdate(
	ctx context.Context, to address, u backend.Update, when occasion,
) error {
	if !a.clientCapabilities().takes(u, when) {
		a.log.Debug("the client does not take an update", "kind", u.Kind)
		return nil
	}
	return a.conn.Notify(ctx, protocol.SessionUpdate, to.params(u))
}
