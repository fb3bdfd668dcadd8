package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/record"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A child session, such as the session of a subagent, is part of the session that it belongs to: it
// has no queue, no lease and no row in the store. Its id is the session's id with the child's key
// behind it.

// childID returns the id that the client knows a child of a session by.
func childID(of sessionstore.ID, key string) sessionstore.ID {
	return of + "." + sessionstore.ID(key)
}

// splitChild undoes childID. It returns an id that is not of a child as it is.
func splitChild(id sessionstore.ID) (of sessionstore.ID, key string, isChild bool) {
	at := strings.LastIndex(string(id), "."+sessionstore.ChildPrefix)
	if at < 0 || !sessionstore.IsChildKey(string(id[at+1:])) {
		return id, "", false
	}
	return id[:at], string(id[at+1:]), true
}

// namesChild reports whether the message with these params is about a child.
func namesChild(params backend.Raw) bool {
	if !bytes.Contains(params, []byte("."+sessionstore.ChildPrefix)) {
		return false
	}
	_, _, ok := splitChild(sessionstore.ID(strictjson.FindText(params, protocol.SessionID)))
	return ok
}

// external returns the id that the client has for the key of a child. It returns other texts
// unchanged.
func external(id sessionstore.ID, text string) string {
	switch {
	case !sessionstore.IsChildKey(text):
		return text
	case text == sessionstore.ParentKey:
		return string(id)
	}
	return string(childID(id, text))
}

// address names a session to the client.
type address struct {
	id     sessionstore.ID
	member string // its sessionMember
}

func newAddress(id sessionstore.ID) address { return address{id, sessionMember(id)} }

// params returns the params that tell the client an update of the session or of a child.
func (a address) params(u backend.Update) json.RawMessage {
	member := a.member
	key, u, isChild := u.Child()
	if isChild {
		member = sessionMember(childID(a.id, key))
	}
	if bytes.Contains(u.Raw, []byte(sessionstore.ChildPrefix)) { // keys, in the place of ids
		u.Raw = protocol.MapUpdateReferences(string(u.Kind), u.Raw,
			func(text string) string { return external(a.id, text) })
	}
	return putSessionMember(u.Raw, member)
}

// kindOf returns the kind of an update of the session or of a child.
func kindOf(u backend.Update) sessionstore.Kind {
	_, of, _ := u.Child()
	return of.Kind
}

// cancelChild passes the client's session/cancel for a child on to the backend.
func (s *session) cancelChild(key string, params backend.Raw) {
	parent, ok := s.backend.(backend.Parent)
	if !ok {
		return
	}
	_ = s.adapter.tasks.Guard("cancel", func() error {
		s.WithBackend(func(backend.Session) { parent.CancelChild(key, params) })
		return nil
	})
}

// hasChild reports whether the backend has a child now.
func (s *session) hasChild(key string) bool {
	parent, ok := s.backend.(backend.Parent)
	return ok && parent.HasChild(key)
}

func (a *adapter) newChildLimit() *record.ChildLimit {
	return record.NewChildLimit(a.options.tuning.ChildBytes, a.log)
}
