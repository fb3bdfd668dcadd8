package proxy

import (
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// undeclared are capabilities of JetBrains' editor that agents are not told of: they send the
// sessions of subagents in a way that is not ACP's, and requests about lists of sessions by ids in
// params and results, which are not mapped.
var undeclared = []string{"nativeSubagentSessions", "sessionIndex"}

// withoutUndeclared removes undeclared from the params of initialize, and session.cursors, a draft in
// which agents name positions that a fork could not go back to. Agents send subagents in
// JetBrains' way to its editor, whatever else it declares, so it cannot declare ACP's way either.
// The agent then reports the work of its subagents in the session itself, and offers session/list
// only.
func withoutUndeclared(params backend.Raw) (backend.Raw, error) {
	return edit(params, func(capabilities backend.Raw) (backend.Raw, error) {
		isAir := false
		capabilities, err := edit(capabilities, func(air backend.Raw) (backend.Raw, error) {
			isAir = strictjson.IsObject(air)
			return edit(air, declared, "capabilities")
		}, "_meta", "jetbrains", "air")
		if err != nil {
			return capabilities, err
		}
		capabilities, err = edit(capabilities, withoutCursors, "session")
		if err != nil || !isAir {
			return capabilities, err
		}
		_, capabilities, err = strictjson.Take(capabilities, "subagents")
		return capabilities, err
	}, "clientCapabilities")
}

// withoutCursors returns the capabilities for sessions without session.cursors.
func withoutCursors(session backend.Raw) (backend.Raw, error) {
	if !strictjson.IsObject(session) {
		return session, nil
	}
	_, rest, err := strictjson.Take(session, "cursors")
	return rest, err
}

// declared returns a list of capabilities without those in undeclared.
func declared(list backend.Raw) (backend.Raw, error) {
	var names []json.RawMessage
	if json.Unmarshal(list, &names) != nil {
		return list, nil
	}
	left := slices.DeleteFunc(slices.Clone(names), func(raw json.RawMessage) bool {
		var name string
		return json.Unmarshal(raw, &name) == nil && slices.Contains(undeclared, name)
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
