package acp

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// occasion is why a client is sent an update.
type occasion int

const (
	asItComes   occasion = iota // the backend has just sent it
	fromHistory                 // it was recorded, perhaps for another client
)

// takes reports whether the client is sent updates of this kind. A kind that nobody knows passes as
// it comes. Such a kind probably needs a capability, so from a history it is sent only to a client
// that declares one that nobody knows either.
func (c *clientCapabilities) takes(kind sessionstore.Kind, when occasion) bool {
	needs, known := kind.Needs()
	switch {
	case needs != "":
		return c.declares(needs)
	case known || when == asItComes:
		return true
	}
	return c.unknown
}

// sendUpdate sends a's client an update, whose params are given, if the client takes it.
func (a *agent) sendUpdate(
	ctx context.Context, kind sessionstore.Kind, when occasion, params backend.Raw,
) error {
	if !a.clientCapabilities().takes(kind, when) {
		a.log.Debug("the client does not take an update", "kind", kind)
		return nil
	}
	return a.conn.Notify(ctx, protocol.SessionUpdate, params)
}
