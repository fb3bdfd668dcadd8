package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// MapUpdateReferences returns the update in params of session/update with the ids of other sessions
// in it replaced: the child that subagent_update is about, the sender and recipient of
// session_message, and the sessions that a tool call shows. kind is the update's.
func MapUpdateReferences(
	kind string, params json.RawMessage, replace func(id string) string,
) json.RawMessage {
	var names []string
	switch kind {
	case "subagent_update":
		names = []string{SessionID}
	case "session_message":
		names = []string{"senderSessionId", "recipientSessionId"}
	case "tool_call", "tool_call_update":
		return MapToolCallReferences(params, "update", replace)
	default:
		return params
	}
	update := strictjson.Find(params, "update")
	mapped := update
	for _, name := range names {
		mapped = mapID(mapped, name, replace)
	}
	return put(params, "update", update, mapped)
}

// MapToolCallReferences returns params in which the sessions that a tool call shows are replaced.
// member is the name of the tool call in params.
func MapToolCallReferences(
	params json.RawMessage, member string, replace func(id string) string,
) json.RawMessage {
	if !MayNameSession(params) {
		return params
	}
	call := strictjson.Find(params, member)
	var content []json.RawMessage
	if json.Unmarshal(strictjson.Find(call, "content"), &content) != nil {
		return params
	}
	changed := false
	for i, part := range content {
		var what string
		if json.Unmarshal(strictjson.Find(part, "type"), &what) != nil || what != "session" {
			continue
		}
		content[i] = mapID(part, SessionID, replace)
		changed = changed || !bytes.Equal(content[i], part)
	}
	if !changed {
		return params
	}
	list, _ := strictjson.Append(nil, content...)
	return strictjson.Set(params, member, strictjson.Set(call, "content", list))
}

// mapID replaces an id in an object.
func mapID(
	object json.RawMessage, name string, replace func(id string) string,
) json.RawMessage {
	value, _, err := strictjson.Take(object, name)
	var id string
	if err != nil || value == nil || json.Unmarshal(value, &id) != nil {
		return object
	}
	mapped := replace(id)
	if mapped == id {
		return object
	}
	return strictjson.Set(object, name, strictjson.Encode(mapped))
}

// put sets a member of params if its value has changed.
func put(params json.RawMessage, name string, before, after json.RawMessage) json.RawMessage {
	if bytes.Equal(before, after) {
		return params
	}
	return strictjson.Set(params, name, after)
}
