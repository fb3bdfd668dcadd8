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

// withoutUndeclared removes undeclared from the params of initialize, and session.cursors, a draft
// in which agents name positions that a fork could not go back to. Agents send subagents in
// JetBrains' way to its editor, whatever else it declares, so it cannot declare ACP's way either.
// The agent then reports the work of its subagents in the session itself, and offers session/list
// only.
func withoutUndeclared(params backend.Raw) backend.Raw {
	const capabilities = "clientCapabilities"
	path := []string{capabilities, "_meta", "jetbrains", "air"}
	params = strictjson.Remove(params, capabilities, "session", "cursors")
	air := strictjson.Last(params, path...)
	if !strictjson.IsObject(air) {
		return params
	}
	params = strictjson.Remove(params, capabilities, "subagents")
	list := strictjson.Last(air, "capabilities")
	var names []json.RawMessage
	_ = json.Unmarshal(list, &names) // anything but a list names none
	declared := slices.DeleteFunc(slices.Clone(names), func(raw json.RawMessage) bool {
		var name string
		return json.Unmarshal(raw, &name) == nil && slices.Contains(undeclared, name)
	})
	if len(declared) < len(names) {
		list, _ = strictjson.Append(nil, declared...)
		air = strictjson.Set(air, "capabilities", list)
	}
	return strictjson.SetAt(params, air, path...)
}
