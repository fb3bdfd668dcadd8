package acp

import "github.com/acp-agent/acp-agent/internal/strictjson"

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
