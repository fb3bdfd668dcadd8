package acp

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// occasion is why a client is sent an update.
type occasion int

const (
	asItComes  occasion = iota // the backend, which knows the client, has just sent it
	forAnother                 // it was recorded, or is sent, for a client that may be another one
)

// occasionFrom returns the occasion of what the backend of an agent has just sent.
func (c *connection) occasionFrom(from *adapter) occasion {
	if c.adapter != from { // the backend does not know this client
		return forAnother
	}
	return asItComes
}

// takes reports whether the client is sent an update. A kind that nobody knows passes as it comes.
// Such a kind probably needs a capability, so what was meant for another client is sent only to a
// client that declares a capability that nobody knows either.
func (c *clientCapabilities) takes(u backend.Update, when occasion) bool {
	_, of, isSubagent := u.Subagent()
	if isSubagent && !c.declares(protocol.Subagents) {
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

// withoutContent returns params in which a tool call, the member with this name, has only content
// that the client can show. If that was meant for another client, it cannot show a terminal, which
// exists in the client that created it, and only as long as that is connected: Zed drops a whole
// update with one that it does not know.
func (c *clientCapabilities) withoutContent(
	params json.RawMessage, member string, when occasion,
) json.RawMessage {
	return protocol.KeepToolCallContent(params, member, func(needs string) bool {
		if needs == protocol.Terminals {
			return when == asItComes && (c.declares(needs) || c.terminalOutput)
		}
		return needs == "" || c.declares(needs)
	})
}

// deliver sends the client an update of a session with send, if the client takes it. params are
// those of the update for a client that takes everything.
func (c *connection) deliver(
	to address.Address, u backend.Update, params json.RawMessage, when occasion,
	send func(method string, params json.RawMessage) error,
) error {
	if u.Kind == sessionstore.Notice {
		for _, form := range c.formsOf(u) {
			if !c.clientCapabilities().takes(form, when) {
				continue
			}
			if err := send(protocol.SessionUpdate, to.Update(form)); err != nil {
				return err
			}
		}
		return nil
	}
	if !c.clientCapabilities().takes(u, when) {
		return nil
	}
	_, of, _ := u.Subagent()
	if of.Kind == sessionstore.ToolCall || of.Kind == sessionstore.ToolCallUpdate {
		params = c.clientCapabilities().withoutContent(params, "update", when)
	}
	return send(protocol.SessionUpdate, params)
}
