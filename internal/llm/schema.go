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
// uses only the few keywords that Gemini knows. adaptSchema reports whether there is such a schema.
func adaptSchema(schema json.RawMessage, plain bool) (json.RawMessage, bool) {
	var root schemaNode
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&root) != nil || root == nil {
		return nil, false
	}
	combined := slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"},
		func(name string) bool { return root[name] != nil })
	if !plain && !combined && root["type"] == "object" {
		if root["properties"] != nil { // OpenAI and others need it
			return schema, true
		}
		with, err := strictjson.Put(schema, "properties", json.RawMessage("{}"))
		return with, err == nil
	}
	a := schemaAdapter{root: root}
	object := maps.Clone(root)
	fill(object, schemaNode{"type": "object"})
	adapted := a.plain(object, nil)
	if adapted["type"] != "object" || a.nodes > maxSchemaNodes {
		return nil, false
	}
	delete(adapted, "nullable")
	return strictjson.Encode(adapted), true
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
	switch {
	case p["type"] != nil:
	case p["properties"] != nil:
		p["type"] = "object"
	case p["items"] != nil:
		p["type"] = "array"
	default:
		p["type"] = "string" // or anything
	}
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

// joined returns a schema joined with those of which it consists. It may have no type.
func (a *schemaAdapter) joined(schema any, open []string) schemaNode {
	s, _ := schema.(schemaNode)
	if a.nodes++; s == nil || a.nodes > maxSchemaNodes {
		return schemaNode{}
	}
	s, open = a.resolve(s, open)
	p := a.own(s, open)
	for _, each := range list(s["allOf"]) {
		join(p, a.joined(each, open))
	}
	var common []string // is required by all alternatives
	chosen := false
	for _, each := range slices.Concat(list(s["anyOf"]), list(s["oneOf"])) {
		part := a.joined(each, open)
		needed := texts(part["required"])
		delete(part, "required")
		if part["nullable"] != nil && len(part) == 1 {
			p["nullable"] = true
			continue
		}
		objects := p["properties"] != nil && part["properties"] != nil
		if chosen && !objects || p["type"] != nil && part["type"] != nil && p["type"] != part["type"] {
			continue
		}
		if !chosen {
			common = needed
		}
		common = slices.DeleteFunc(common, func(s string) bool { return !slices.Contains(needed, s) })
		join(p, part)
		chosen = true
	}
	join(p, schemaNode{"required": common})
	return p
}

// own returns what a schema says itself.
func (a *schemaAdapter) own(s schemaNode, open []string) schemaNode {
	p := schemaNode{"required": texts(s["required"])}
	for _, name := range []string{"description", "minimum", "maximum", "minItems", "maxItems"} {
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
		p["properties"] = adapted
	}
	if items, has := s["items"]; has {
		p["items"] = a.plain(items, open)
	}
	return p
}

// resolve returns s together with what it refers to, and the references that are being followed
// then.
func (a *schemaAdapter) resolve(s schemaNode, open []string) (schemaNode, []string) {
	for {
		ref, referring := s["$ref"].(string)
		if !referring {
			return s, open
		}
		s = maps.Clone(s)
		delete(s, "$ref")
		switch path, local := strings.CutPrefix(ref, "#"); {
		case slices.Contains(open, ref): // a part of itself
			fill(s, schemaNode{"type": "object"})
		case local:
			fill(s, a.at(path))
		}
		open = append(slices.Clip(open), ref)
	}
}

// at returns the schema at a path in the root, or nil.
func (a *schemaAdapter) at(path string) schemaNode {
	at := a.root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path != "" {
			at, _ = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)].(schemaNode)
		}
	}
	return at
}

// join adds a part of a plain schema to another one. What both have stays as it is, except that
// objects get the properties of both, and properties the choices of both.
func join(to, part schemaNode) {
	required := append(texts(to["required"]), texts(part["required"])...)
	properties, both := to["properties"].(schemaNode)
	more, _ := part["properties"].(schemaNode)
	fill(to, part)
	if to["required"] = required; len(required) == 0 {
		delete(to, "required")
	}
	for name, property := range more {
		before, _ := properties[name].(schemaNode)
		switch after, _ := property.(schemaNode); {
		case !both:
		case before == nil:
			properties[name] = property
		case before["enum"] != nil && after["enum"] != nil:
			before["enum"] = append(slices.Clip(list(before["enum"])), list(after["enum"])...)
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
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []string:
		all = append(all, v...)
	case []any:
		for _, each := range v {
			if s, ok := each.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}
