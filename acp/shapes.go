package acp

import "github.com/acp-agent/acp-agent/acp/strict"

// The keys of ACP v1's requests as far as they are checked for their case (W2). _meta is free
// inside. A union's variants share one shape.
var (
	metaShape = keys("_meta")
	pairShape = keys("name", "value", "_meta")

	serversShape = list(shape(map[string]*strict.Shape{"env": list(pairShape), "headers": list(pairShape)},
		"name", "type", "command", "args", "url", "_meta"))

	annotationsShape = keys("audience", "lastModified", "priority", "_meta")

	resourceShape = keys("uri", "mimeType", "text", "blob", "_meta")

	blockShape = shape(map[string]*strict.Shape{"annotations": annotationsShape, "resource": resourceShape},
		"type", "text", "data", "mimeType", "uri", "name", "title", "description", "size", "_meta")

	newShape = shape(map[string]*strict.Shape{"mcpServers": serversShape},
		"cwd", "additionalDirectories", "_meta")

	loadShape = shape(map[string]*strict.Shape{"mcpServers": serversShape},
		"sessionId", "cwd", "additionalDirectories", "_meta")

	promptShape = shape(map[string]*strict.Shape{"prompt": list(blockShape)}, "sessionId", "_meta")

	sessionShape = keys("sessionId", "_meta")

	// callShapes are those of the requests that the runtime answers.
	callShapes = map[string]*strict.Shape{
		"authenticate":              keys("methodId", "_meta"),
		"logout":                    keys("_meta"),
		"session/set_mode":          keys("sessionId", "modeId", "_meta"),
		"session/set_config_option": keys("sessionId", "configId", "type", "value", "_meta"),
	}

	listShape = keys("cwd", "additionalDirectories", "cursor", "_meta")

	initializeShape = shape(map[string]*strict.Shape{
		"clientInfo": keys("name", "title", "version", "_meta"),
		"clientCapabilities": shape(map[string]*strict.Shape{
			"fs":          keys("readTextFile", "writeTextFile", "_meta"),
			"auth":        keys("terminal", "_meta"),
			"elicitation": shape(map[string]*strict.Shape{"form": metaShape, "url": metaShape}, "_meta"),
			"session": shape(map[string]*strict.Shape{
				"configOptions": shape(map[string]*strict.Shape{"boolean": metaShape}, "_meta"),
			}, "compaction", "notices", "_meta"),
		}, "terminal", "_meta"),
	}, "protocolVersion", "_meta")
)

func keys(names ...string) *strict.Shape { return shape(nil, names...) }

func shape(nested map[string]*strict.Shape, names ...string) *strict.Shape {
	fields := make(map[string]*strict.Shape, len(nested)+len(names))
	for name, s := range nested {
		fields[name] = s
	}
	for _, name := range names {
		fields[name] = nil
	}
	return &strict.Shape{Fields: fields}
}

func list(item *strict.Shape) *strict.Shape { return &strict.Shape{Items: item} }
