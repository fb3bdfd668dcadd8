package proxy

import (
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// nativeSubagents is a capability of JetBrains' editor, with which agents send the sessions of
// subagents in a way that is not ACP's.
const nativeSubagents = "nativeSubagentSessions"

// withoutNativeSubagents removes from the params of initialize that the client understands
// subagents in JetBrains' way. Agents use that for JetBrains' editor, whatever else it declares, so
// it cannot declare ACP's way either. The agent then reports the work of its subagents in the
// session itself.
func withoutNativeSubagents(params backend.Raw) (backend.Raw, error) {
	return edit(params, func(capabilities backend.Raw) (backend.Raw, error) {
		isAir := false
		capabilities, err := edit(capabilities, func(air backend.Raw) (backend.Raw, error) {
			isAir = strictjson.IsObject(air)
			return edit(air, withoutNative, "capabilities")
		}, "_meta", "jetbrains", "air")
		if err != nil || !isAir {
			return capabilities, err
		}
		_, capabilities, err = strictjson.Take(capabilities, "subagents")
		return capabilities, err
	}, "clientCapabilities")
}

// withoutNative removes nativeSubagents from a list of capabilities.
func withoutNative(list backend.Raw) (backend.Raw, error) {
	var names []json.RawMessage
	if json.Unmarshal(list, &names) != nil {
		return list, nil
	}
	left := slices.DeleteFunc(slices.Clone(names), func(raw json.RawMessage) bool {
		var name string
		return json.Unmarshal(raw, &name) == nil && name == nativeSubagents
	})
	if len(left) == len(names) {
		return list, nil
	}
	list, _ = strictjson.Append(nil, left...)
	return list, nil
}

// edit replaces the value at a path of member names in an object. If there is none, the object
// stays as it is.
func edit(
	object backend.Raw, change func(backend.Raw) (backend.Raw, error), path ...string,
) (backend.Raw, error) {
	if len(path) == 0 {
		return change(object)
	}
	if !strictjson.IsObject(object) {
		return object, nil
	}
	value, _, err := strictjson.Take(object, path[0])
	if err != nil || value == nil {
		return object, err
	}
	if value, err = edit(value, change, path[1:]...); err != nil {
		return nil, err
	}
	return strictjson.Put(object, path[0], value)
}
