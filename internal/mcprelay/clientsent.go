package mcprelay

import (
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// capabilitiesKey is where a modern request declares what its client can do.
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"

// clientSent is what the server is given of a line from the client.
func (r *relay) clientSent(line []byte) (pass []byte, after func()) {
	m := read(line)
	switch {
	case m.method == "initialize" && m.id != nil:
		r.starting()
		return declared(line, m), nil
	case m.isRequest() && isObject(at(m.params, "_meta", capabilitiesKey)):
		return r.modern(line, m), nil
	case m.id != nil:
	case m.method == "notifications/initialized":
		return line, r.started
	case m.method == "notifications/roots/list_changed":
		return nil, nil
	case m.method == "notifications/cancelled":
		return r.cancelled(line, m), nil
	}
	return line, nil
}

// declared is an initialize request that declares roots. One that is malformed is the server's to refuse.
func declared(line []byte, m message) []byte {
	if !isObject(at(m.params, "capabilities")) || string(at(m.params, "capabilities", "roots", "listChanged")) == "true" {
		return line
	}
	return edited(line, json.RawMessage(`{"listChanged":true}`), "params", "capabilities", "roots")
}

// edited is a line with another value at a path, or as it is if it has no such path.
func edited(line []byte, value json.RawMessage, path ...string) []byte {
	changed, err := put(line, value, path...)
	if err != nil {
		return line
	}
	return changed
}

// modern is a request of 2026-07-28 that declares roots, and is held if its result can ask for them.
func (r *relay) modern(line []byte, m message) []byte {
	if !isObject(at(m.params, "_meta", capabilitiesKey, "roots")) {
		line = edited(line, json.RawMessage(`{}`), "params", "_meta", capabilitiesKey, "roots")
	}
	switch m.method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return line
	}
	if e, ok := r.unseal(at(m.params, "requestState")); ok {
		line = r.completed(line, e)
	}
	if err := r.calls.hold(line, m.id); err != nil {
		r.toClient(refusal(m.id, err.Error()))
		return nil
	}
	return line
}

// completed is a call that the client repeats, with the roots among its answers and the server's own state.
func (r *relay) completed(line []byte, e envelope) []byte {
	answers := at(line, "params", "inputResponses")
	if !isObject(answers) {
		answers = nil
	}
	return repeated(line, r.answered(answers, e.Keys), e.State)
}

// answered are answers with the roots added for each of keys.
func (r *relay) answered(answers json.RawMessage, keys []string) json.RawMessage {
	list := r.roots()
	for _, key := range keys {
		if more, err := strictjson.Put(answers, key, list); err == nil {
			answers = more
		}
	}
	return answers
}

// repeated is a call with other answers and another state, none if it is nil.
func repeated(line []byte, answers, state json.RawMessage) []byte {
	line = edited(line, answers, "params", "inputResponses")
	if state != nil {
		return edited(line, state, "params", "requestState")
	}
	_, params, err := strictjson.Take(at(line, "params"), "requestState")
	if err != nil {
		return line
	}
	return edited(line, params, "params")
}

// cancelled is a cancellation with the id by which the server knows the call.
func (r *relay) cancelled(line []byte, m message) []byte {
	id := at(m.params, "requestId")
	if id == nil {
		return line
	}
	if theirs := r.calls.cancelled(id); theirs != nil {
		return edited(line, theirs, "params", "requestId")
	}
	return line
}

// toClient has the client sent a message of the relay's own.
func (r *relay) toClient(message []byte) {
	if !r.client.send(message) {
		r.client.warned.Do(func() { r.log.Warn("the MCP client does not read: refusals are not sent") })
	}
}
