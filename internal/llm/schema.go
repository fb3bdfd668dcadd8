package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// maxSchemaNodes limits the schemas of which the schema of a tool consists, including referenced
// schemas. It stops schemas that grow too large.
const maxSchemaNodes = 5000

// adaptSchema returns the schema of a tool's arguments in a form that servers accept: as the schema
// of an object, without alternatives at the top. If plain is set or there are such alternatives, it
// uses only the few keywords that Gemini knows. It returns nil if there is no such schema. An empty
// schema stands for that of any object.
func adaptSchema(schema json.RawMessage, plain bool) json.RawMessage {
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	var root schemaNode
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&root) != nil || root == nil {
		return nil
	}
	combined := slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "not", "enum",
		"const"},
		func(name string) bool { return root[name] != nil })
	if !plain && !combined && root["type"] == "object" {
		if root["properties"] != nil { // OpenAI and others need it
			return schema
		}
		return strictjson.Set(schema, "properties", json.RawMessage("{}"))
	}
	a := schemaAdapter{root: root}
	object := maps.Clone(root)
	fill(object, schemaNode{"type": "object"})
	adapted := a.plain(object, nil)
	if adapted["type"] != "object" || a.nodes > maxSchemaNodes {
		return nil
	}
	delete(adapted, "nullable")
	return strictjson.Encode(adapted)
}

// schemaNode is a decoded JSON schema.
type schemaNode = map[string]any

// schemaAdapter adapts the parts of one schema. Its methods are given the references that are being
// followed.
type schemaAdapter struct {
	root  schemaNode
	nodes int // how many were looked at
}

// plain returns a schema with only the keywords that Gemini knows:
// https://ai.google.dev/api/caching#Schema. Of alternatives that are not objects, it has the first.
func (a *schemaAdapter) plain(schema any, open []string) schemaNode {
	p := a.joined(schema, open)
	fill(p, schemaNode{"type": "string"}) // or anything
	required := texts(p["required"])
	delete(p, "required")
	switch p["type"] {
	case "object":
		fill(p, schemaNode{"properties": schemaNode{}})
		properties, _ := p["properties"].(schemaNode)
		slices.Sort(required)
		required = slices.DeleteFunc(slices.Compact(required),
			func(name string) bool { return properties[name] == nil })
		if len(required) > 0 {
			p["required"] = required
		}
	case "array":
		fill(p, schemaNode{"items": schemaNode{"type": "string"}})
	}
	return p
}

// joined returns a schema joined with those of which it consists. It may have no type. It has the
// properties of all alternatives, none of which is required.
func (a *schemaAdapter) joined(schema any, open []string) schemaNode {
	s, _ := schema.(schemaNode)
	if a.nodes++; s == nil || a.nodes > maxSchemaNodes {
		return schemaNode{}
	}
	p := a.own(s, open)
	if ref, referring := s["$ref"].(string); referring {
		if slices.Contains(open, ref) { // a part of itself
			fill(p, schemaNode{"type": "object"})
		} else {
			join(p, a.joined(a.at(ref), append(slices.Clip(open), ref)))
		}
	}
	for _, each := range list(s["allOf"]) {
		join(p, a.joined(each, open))
	}
	for _, each := range slices.Concat(list(s["anyOf"]), list(s["oneOf"])) {
		part := a.joined(each, open)
		delete(part, "required")
		switch {
		case part["nullable"] != nil && len(part) == 1:
			p["nullable"] = true
		case p["type"] == nil, p["type"] == "object" && part["type"] == "object":
			join(p, part)
		}
	}
	return p
}

// own returns what a schema says itself.
func (a *schemaAdapter) own(s schemaNode, open []string) schemaNode {
	p := schemaNode{}
	for _, name := range []string{"description", "minimum", "maximum", "minItems", "maxItems",
		"required"} {
		if value, has := s[name]; has {
			p[name] = value
		}
	}
	for _, kind := range texts(s["type"]) {
		if kind == "null" {
			p["nullable"] = true
		} else {
			fill(p, schemaNode{"type": kind})
		}
	}
	choices := list(s["enum"])
	if value, has := s["const"]; has {
		choices = []any{value}
	}
	if len(choices) > 0 {
		if _, number := choices[0].(json.Number); number {
			fill(p, schemaNode{"type": "number"})
		} else if len(texts(choices)) == len(choices) {
			p["type"], p["enum"] = "string", choices
		}
	}
	if properties, ok := s["properties"].(schemaNode); ok {
		adapted := schemaNode{}
		for name, property := range properties {
			adapted[name] = a.plain(property, open)
		}
		fill(p, schemaNode{"type": "object", "properties": adapted})
	}
	if items, has := s["items"]; has {
		fill(p, schemaNode{"type": "array", "items": a.plain(items, open)})
	}
	return p
}

// at returns the schema that a reference names by its path in the root, or nil.
func (a *schemaAdapter) at(ref string) any {
	at, names := a.root, strings.Split(ref, "/")
	if names[0] != "#" {
		return nil
	}
	for _, name := range names[1:] {
		at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)].(schemaNode)
	}
	return at
}

// join adds a part of a plain schema to another one. What both have stays as it is, except that
// objects get the properties of both, and properties the choices of both.
func join(to, part schemaNode) {
	properties, both := to["properties"].(schemaNode)
	more, _ := part["properties"].(schemaNode)
	if required := slices.Concat(list(to["required"]), list(part["required"])); required != nil {
		to["required"] = required
	}
	fill(to, part)
	for name, property := range more {
		before, _ := properties[name].(schemaNode)
		after, _ := property.(schemaNode)
		switch {
		case both && before == nil:
			properties[name] = property
		case before["enum"] != nil && after["enum"] != nil:
			before["enum"] = slices.Concat(list(before["enum"]), list(after["enum"]))
		}
	}
}

// fill adds the members of a schema to another one that has no members of these names.
func fill(to, from schemaNode) {
	for name, value := range from {
		if _, own := to[name]; !own {
			to[name] = value
		}
	}
}

// list returns a JSON array, nil for anything else.
func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// texts returns the texts in a JSON array, or a text alone.
func texts(v any) []string {
	var all []string
	for _, each := range append(list(v), v) {
		if s, ok := each.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
