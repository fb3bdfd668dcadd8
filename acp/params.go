package acp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// readParams parses params and checks their keys against the schema (W2).
func readParams(params json.RawMessage, shape *strictjson.Shape) (strictjson.Object, []strictjson.Violation) {
	object, err := strictjson.ParseObject(params)
	if err != nil {
		return object, []strictjson.Violation{strictjson.NewViolation("params", nil, strictjson.Type).Expecting("an object")}
	}
	return object, strictjson.Check(params, shape)
}

// takeSession takes the session id off params. The id is "" where there is none.
func takeSession(params json.RawMessage) (sessionstore.ID, backend.Raw, error) {
	if !isObject(params) {
		return "", params, nil
	}
	raw, rest, err := strictjson.Take(params, "sessionId")
	if err != nil {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params cannot be read")
	}
	if raw == nil {
		return "", params, nil
	}
	var id sessionstore.ID
	if json.Unmarshal(raw, &id) != nil {
		return "", params, nil
	}
	return id, rest, nil
}

// sessionMember is the member that names a session in params.
func sessionMember(id sessionstore.ID) string { return `"sessionId":` + string(quote(string(id))) }

// putSession is params with a session id.
func putSession(params backend.Raw, id sessionstore.ID) json.RawMessage {
	return putMember(params, sessionMember(id))
}

// putMember is params with a sessionMember. Params that name no session, as is the rule, are copied
// as they are; others have theirs replaced.
func putMember(params backend.Raw, member string) json.RawMessage {
	if len(params) > 2 && params[0] == '{' && params[1] == '"' && !mayNameSession(params) {
		with := make(json.RawMessage, 0, len(params)+len(member)+1)
		with = append(append(with, '{'), member...)
		return append(append(with, ','), params[1:]...)
	}
	return put(params, "sessionId", json.RawMessage(strings.TrimPrefix(member, `"sessionId":`)))
}

// mayNameSession reports whether params may have a sessionId, perhaps spelled with escapes.
func mayNameSession(params backend.Raw) bool {
	return bytes.Contains(params, []byte("sessionId")) || bytes.Contains(params, []byte(`\u`))
}

// lifecycleResult is a runtime's part of a lifecycle response, without a session id of its own.
func lifecycleResult(result backend.Raw) (json.RawMessage, error) {
	if len(result) == 0 {
		return json.RawMessage(`{}`), nil
	}
	_, rest, err := strictjson.Take(result, "sessionId")
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent answered with something that is not an object")
	}
	return rest, nil
}

// parseUpdate rejects an update of the backend that is invalid.
func parseUpdate(u backend.Update) (sessionstore.Update, error) {
	parsed, err := sessionstore.ParseUpdate(u)
	if err != nil {
		return parsed, jsonrpc.Errorf(jsonrpc.CodeInternal, "the agent sent an invalid update: %v", err)
	}
	return parsed, nil
}

// titleIn is the title in a session_info_update, "" if that removes it; nil if u says nothing of a title.
func titleIn(u sessionstore.Update) *string {
	if u.Kind != sessionstore.SessionInfoUpdate {
		return nil
	}
	raw, given := members(members(u.Raw)["update"])["title"]
	if !given {
		return nil
	}
	title := ""
	if json.Unmarshal(raw, &title) == nil {
		title = cutTitle(title)
	}
	return &title
}

// titleUpdate tells the client of a session's title (A29).
func titleUpdate(title string) json.RawMessage {
	return json.RawMessage(`{"update":{"sessionUpdate":"session_info_update","title":` + string(quote(title)) + `}}`)
}

// put is object with a member set. What is not an object is taken as an empty one.
func put(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	with, err := strictjson.Put(object, name, value)
	if err != nil {
		with, _ = strictjson.Put(nil, name, value)
	}
	return with
}

// members are the members of an object, none if raw is not one.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// isObject reports whether raw is a JSON object.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// isTrue reports whether raw is true.
func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

// quote is s as a JSON string.
func quote(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// The keys of ACP v1's requests as far as they are checked for their case (W2). _meta is free
// inside. A union's variants share one shape.
var (
	metaShape = keys("_meta")
	pairShape = keys("name", "value", "_meta")

	serversShape = list(shape(map[string]*strictjson.Shape{"env": list(pairShape), "headers": list(pairShape)},
		"name", "type", "command", "args", "url", "_meta"))

	annotationsShape = keys("audience", "lastModified", "priority", "_meta")

	resourceShape = keys("uri", "mimeType", "text", "blob", "_meta")

	blockShape = shape(map[string]*strictjson.Shape{"annotations": annotationsShape, "resource": resourceShape},
		"type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "_meta")

	newShape = shape(map[string]*strictjson.Shape{"mcpServers": serversShape},
		"cwd", "additionalDirectories", "_meta")

	loadShape = shape(map[string]*strictjson.Shape{"mcpServers": serversShape},
		"sessionId", "cwd", "additionalDirectories", "_meta")

	promptShape = shape(map[string]*strictjson.Shape{"prompt": list(blockShape)}, "sessionId", "_meta")

	sessionShape = keys("sessionId", "_meta")

	// callShapes are those of the requests that the runtime answers.
	callShapes = map[string]*strictjson.Shape{
		"authenticate":              keys("methodId", "_meta"),
		"logout":                    keys("_meta"),
		"session/set_mode":          keys("sessionId", "modeId", "_meta"),
		"session/set_config_option": keys("sessionId", "configId", "type", "value", "_meta"),
	}

	listShape = keys("cwd", "additionalDirectories", "cursor", "_meta")

	initializeShape = shape(map[string]*strictjson.Shape{
		"clientInfo": keys("name", "title", "version", "_meta"),
		"clientCapabilities": shape(map[string]*strictjson.Shape{
			"fs":          keys("readTextFile", "writeTextFile", "_meta"),
			"auth":        keys("terminal", "_meta"),
			"elicitation": shape(map[string]*strictjson.Shape{"form": metaShape, "url": metaShape}, "_meta"),
			"session": shape(map[string]*strictjson.Shape{
				"configOptions": shape(map[string]*strictjson.Shape{"boolean": metaShape}, "_meta"),
			}, "compaction", "notices", "_meta"),
		}, "terminal", "_meta"),
	}, "protocolVersion", "_meta")
)

func keys(names ...string) *strictjson.Shape { return shape(nil, names...) }

func shape(nested map[string]*strictjson.Shape, names ...string) *strictjson.Shape {
	fields := make(map[string]*strictjson.Shape, len(nested)+len(names))
	for name, s := range nested {
		fields[name] = s
	}
	for _, name := range names {
		fields[name] = nil
	}
	return &strictjson.Shape{Fields: fields}
}

func list(item *strictjson.Shape) *strictjson.Shape { return &strictjson.Shape{Items: item} }

const (
	absent presence = iota // not a member of the method
	optional
	required
)
