package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// The members of ACP v1 requests whose spelling is checked. Any member is allowed in _meta. The
// variants of a union share one shape.
var (
	pairShape = keys("name", "value", "_meta")

	serversShape = list(shape(
		shapes{"args": list(nil), "env": list(pairShape), "headers": list(pairShape)},
		"name", "type", "command", "url", "_meta"))

	annotationsShape = keys("audience", "lastModified", "priority", "_meta")

	resourceShape = keys("uri", "mimeType", "text", "blob", "_meta")

	blockShape = shape(shapes{"annotations": annotationsShape, "resource": resourceShape},
		"type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "_meta")

	systemPromptShape = shape(shapes{"content": list(blockShape)}, "mode", "_meta")

	newShape = shape(shapes{protocol.AdditionalDirectories: list(nil),
		protocol.MCPServers: serversShape, protocol.SystemPrompt: systemPromptShape},
		"cwd", "_meta")

	loadShape = shape(newShape.Fields, protocol.SessionID)

	idShape = keys(protocol.SessionID, "_meta")
)

// capabilitiesShape returns the shape of clientCapabilities.
func capabilitiesShape() *strictjson.Shape {
	all := map[string]*strictjson.Shape{"": keys("_meta")}
	for _, c := range protocol.ClientCapabilities() {
		parent, name := "", c.Path
		if dot := strings.LastIndexByte(c.Path, '.'); dot >= 0 {
			parent, name = c.Path[:dot], c.Path[dot+1:]
		}
		if !c.Flag {
			all[c.Path] = keys("_meta")
		}
		all[parent].Fields[name] = all[c.Path]
	}
	return all[""]
}

// shapes are the shapes of members, by name.
type shapes map[string]*strictjson.Shape

func keys(names ...string) *strictjson.Shape { return shape(nil, names...) }

func shape(nested shapes, names ...string) *strictjson.Shape {
	fields := make(shapes, len(nested)+len(names))
	for name, s := range nested {
		fields[name] = s
	}
	for _, name := range names {
		fields[name] = nil
	}
	return &strictjson.Shape{Fields: fields}
}

func list(item *strictjson.Shape) *strictjson.Shape { return &strictjson.Shape{Items: item} }

// parseParams parses the params of a request, and checks the names in them against shape.
func parseParams(raw json.RawMessage, shape *strictjson.Shape) (strictjson.Object, error) {
	object, err := strictjson.ParseObject(raw)
	wrong := strictjson.Check(raw, shape)
	if err != nil {
		expected := "an object"
		if !errors.Is(err, strictjson.ErrNotObject) { // it is JSON, so an object is too large
			expected = fmt.Sprintf("objects with at most %d members", strictjson.MaxItems)
		}
		wrongType := strictjson.NewViolation("params", nil, strictjson.Type)
		wrong = []strictjson.Violation{wrongType.Expecting(expected)}
	}
	return object, strictjson.Refuse(wrong...)
}

// members returns the members of an object, nil if raw is not one.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }
