package protocol

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// MapUpdateReferences returns the update in params of session/update with the ids of other sessions
// in it replaced: the subagent that subagent_update is about, the sender and recipient of
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
	if bytes.Equal(update, mapped) {
		return params
	}
	return strictjson.Set(params, "update", mapped)
}

// MapToolCallReferences returns params in which the sessions that a tool call shows are replaced.
// member is the name of the tool call in params.
func MapToolCallReferences(
	params json.RawMessage, member string, replace func(id string) string,
) json.RawMessage {
	if !MayNameSession(params) {
		return params
	}
	edit := func(what string, part json.RawMessage) json.RawMessage {
		if what == "session" {
			return mapID(part, SessionID, replace)
		}
		return part
	}
	return editToolCallContent(params, member, edit)
}

// KeepToolCallContent returns params in which a tool call shows only content of types whose needed
// capability keep accepts. member is the name of the tool call in params.
func KeepToolCallContent(
	params json.RawMessage, member string, keep func(needs string) bool,
) json.RawMessage {
	left := slices.DeleteFunc(slices.Clone(tables().content), func(t ContentType) bool {
		return !t.OfToolCall || keep(t.Needs)
	})
	if !mayHaveContent(params, left) {
		return params
	}
	edit := func(what string, part json.RawMessage) json.RawMessage {
		if slices.ContainsFunc(left, func(t ContentType) bool { return t.Name == what }) {
			return nil
		}
		return part
	}
	return editToolCallContent(params, member, edit)
}

// mayHaveContent reports whether params may have a string that is the name of one of types, perhaps
// spelled with escapes.
func mayHaveContent(params json.RawMessage, types []ContentType) bool {
	return len(types) > 0 && bytes.Contains(params, []byte(`\u`)) ||
		slices.ContainsFunc(types, func(t ContentType) bool {
			return bytes.Contains(params, []byte(`"`+t.Name+`"`))
		})
}

// editToolCallContent replaces each part of the content of a tool call, the member of params with
// this name, by what edit returns for its type and itself. It leaves out the part if that is nil.
func editToolCallContent(
	params json.RawMessage, member string,
	edit func(what string, part json.RawMessage) json.RawMessage,
) json.RawMessage {
	call := strictjson.Find(params, member)
	var content []json.RawMessage
	if json.Unmarshal(strictjson.Find(call, "content"), &content) != nil {
		return params
	}
	changed, parts := false, content[:0:0]
	for _, part := range content {
		var what string
		edited := part
		if json.Unmarshal(strictjson.Find(part, "type"), &what) == nil {
			edited = edit(what, part)
		}
		changed = changed || !bytes.Equal(edited, part)
		if edited != nil {
			parts = append(parts, edited)
		}
	}
	if !changed {
		return params
	}
	list, _ := strictjson.Append(nil, parts...)
	return strictjson.Set(params, member, strictjson.Set(call, "content", list))
}

// mapID replaces an id in an object.
func mapID(object json.RawMessage, name string, replace func(id string) string) json.RawMessage {
	var id string
	if json.Unmarshal(strictjson.Last(object, name), &id) != nil {
		return object
	}
	mapped := replace(id)
	if mapped == id {
		return object
	}
	return strictjson.Set(object, name, strictjson.Encode(mapped))
}
