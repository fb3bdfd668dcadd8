// Package address says which session, or which subagent of a session, a message is about.
//
// A subagent is part of the session that it belongs to: it has no queue, no lease and no row in the
// store. The client knows it by the session's id with the subagent's key behind it. The agent, and
// the history, have the key in place of the id.
package address

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Address names a session, or a subagent of one, to the client.
type Address struct {
	ID   sessionstore.ID // the client's
	text string          // the ID in JSON
}

// New returns the address of the session with the client's id.
func New(id sessionstore.ID) Address {
	return Address{id, string(strictjson.Text(string(id)))}
}

// Subagent returns the address of the session's subagent with a key.
func (a Address) Subagent(key string) Address {
	return New(a.ID + "." + sessionstore.ID(key))
}

// Split returns the session that an id names, and the key of its subagent if it is of one.
func Split(id sessionstore.ID) (session sessionstore.ID, key string, isSubagent bool) {
	at := strings.LastIndex(string(id), "."+sessionstore.SubagentPrefix)
	if at < 0 || !sessionstore.IsSubagentKey(string(id[at+1:])) {
		return id, "", false
	}
	return id[:at], string(id[at+1:]), true
}

// NamesSubagent reports whether the message with these params is about a subagent.
func NamesSubagent(params backend.Raw) bool {
	if !bytes.Contains(params, []byte("."+sessionstore.SubagentPrefix)) {
		return false
	}
	_, _, ok := Split(sessionstore.ID(strictjson.FindText(params, protocol.SessionID)))
	return ok
}

// External returns the id that the client has for the key of one of the session's subagents. It
// returns other texts unchanged.
func (a Address) External(text string) string {
	switch {
	case !sessionstore.IsSubagentKey(text):
		return text
	case text == sessionstore.ParentKey:
		return string(a.ID)
	}
	return string(a.Subagent(text).ID)
}

// Update returns the params that tell the client an update of the session or of a subagent.
func (a Address) Update(u backend.Update) json.RawMessage {
	to := a
	key, u, isSubagent := u.Subagent()
	if isSubagent {
		to = a.Subagent(key)
	}
	if bytes.Contains(u.Raw, []byte(sessionstore.SubagentPrefix)) { // keys, in the place of ids
		u.Raw = protocol.MapUpdateReferences(string(u.Kind), u.Raw, a.External)
	}
	return to.On(u.Raw)
}

// On returns params with the id. Most params have none, and are copied without parsing them.
func (a Address) On(params backend.Raw) json.RawMessage {
	if len(params) > 2 && params[0] == '{' && params[1] == '"' && !protocol.MayNameSession(params) {
		const member = `{"` + protocol.SessionID + `":`
		with := make(json.RawMessage, 0, len(member)+len(a.text)+len(params))
		with = append(append(with, member...), a.text...)
		return append(append(with, ','), params[1:]...)
	}
	return strictjson.Set(params, protocol.SessionID, json.RawMessage(a.text))
}
