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
// of an object, without alternatives at the top. If plain is set, it uses only the few keywords
// that Gemini knows. If possible, the result accepts everything that schema accepts. adaptSchema
// reports whether there is such a schema.
func adaptSchema(schema json.RawMessage, plain bool) (json.RawMessage, bool) {
	var root schemaNode
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&root) != nil || root == nil {
		return nil, false
	}
	combined := slices.ContainsFunc(combinations, func(name string) bool {
		return root[name] != nil
	})
	if !plain && !combined && root["type"] == "object" {
		if root["properties"] != nil { // OpenAI and others need it
			return schema, true
		}
		with, err := strictjson.Put(schema, "properties", json.RawMessage("{}"))
		return with, err == nil
	}
	a := schemaAdapter{root: root}
	flat, ok := a.object(root, nil)
	if ok && plain {
		flat = a.plain(flat, nil)
	}
	if !ok || a.nodes > maxSchemaNodes {
		return nil, false
	}
	return strictjson.Encode(flat), true
}

// combinations are the keywords that cannot be at the top.
var combinations = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"}

// schemaNode is a decoded JSON schema.
type schemaNode = map[string]any

// schemaAdapter adapts the parts of one schema. Its methods are given the references that are being
// followed.
type schemaAdapter struct {
	root  schemaNode
	nodes int // how many were looked at
}

// visit counts a schema. It reports whether there were too many.
func (a *schemaAdapter) visit() bool {
	a.nodes++
	return a.nodes <= maxSchemaNodes
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

// object returns a schema, which may be a combination of others, as the schema of one object. It
// has the properties of all, and requires those that all alternatives require. It reports whether
// the schema can be an object.
func (a *schemaAdapter) object(schema any, open []string) (schemaNode, bool) {
	s, _ := schema.(schemaNode)
	if s == nil {
		return schemaNode{}, schema == true
	}
	s, open = a.resolve(s, open)
	if kind := s["type"]; !a.visit() || kind != nil && !slices.Contains(texts(kind), "object") {
		return nil, false
	}
	flat, properties, required := maps.Clone(s), schemaNode{}, texts(s["required"])
	addProperties(properties, s)
	for _, each := range list(s["allOf"]) {
		part, ok := a.object(each, open)
		if !ok {
			return nil, false
		}
		fill(flat, part)
		addProperties(properties, part)
		required = append(required, texts(part["required"])...)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		var common []string // is required by all alternatives
		possible := 0
		for _, each := range list(s[name]) {
			part, ok := a.object(each, open)
			if !ok {
				continue
			}
			addProperties(properties, part)
			needed := texts(part["required"])
			if possible++; possible == 1 {
				common = needed
			}
			common = slices.DeleteFunc(slices.Clone(common),
				func(s string) bool { return !slices.Contains(needed, s) })
		}
		if possible == 0 && s[name] != nil {
			return nil, false
		}
		required = append(required, common...)
	}
	for _, name := range append(combinations, "additionalProperties", "required") {
		delete(flat, name)
	}
	flat["type"], flat["properties"] = "object", properties
	slices.Sort(required)
	if required = slices.Compact(required); len(required) > 0 {
		flat["required"] = required
	}
	return flat, true
}

// plainKeywords are copied to a plain schema as they are.
var plainKeywords = []string{"description", "minimum", "maximum", "minItems", "maxItems"}

// plain returns a schema with only the keywords that Gemini knows:
// https://ai.google.dev/api/caching#Schema.
func (a *schemaAdapter) plain(schema any, open []string) schemaNode {
	s, _ := schema.(schemaNode)
	if !a.visit() || s == nil {
		return schemaNode{"type": "string"} // anything
	}
	s, open = a.resolve(s, open)
	for _, part := range list(s["allOf"]) {
		part, _ := part.(schemaNode)
		part, open = a.resolve(part, open)
		s = maps.Clone(s)
		fill(s, part)
	}
	p := schemaNode{}
	for _, name := range plainKeywords {
		if value, has := s[name]; has {
			p[name] = value
		}
	}
	kinds, some := texts(s["type"]), []any(nil)
	for _, kind := range kinds {
		some = append(some, schemaNode{"type": kind})
	}
	if len(kinds) == 0 {
		some = slices.Concat(list(s["anyOf"]), list(s["oneOf"]))
	}
	before := len(some)
	some = slices.DeleteFunc(some, func(each any) bool {
		one, _ := each.(schemaNode)
		return one["type"] == "null"
	})
	if len(some) < before {
		p["nullable"] = true
	}
	of := maps.Clone(s)
	delete(of, "anyOf")
	delete(of, "oneOf")
	switch {
	case len(some) == 0 || len(kinds) == 1:
		a.plainValue(p, s, open)
	case len(some) == 1:
		one, _ := some[0].(schemaNode)
		maps.Copy(of, one)
		fill(p, a.plain(of, open))
	default:
		for i, each := range some {
			if one, _ := each.(schemaNode); len(kinds) > 0 {
				fill(one, of)
				delete(one, "description")
			}
			some[i] = a.plain(each, open)
		}
		p["anyOf"] = some
	}
	return p
}

// plainValue completes p, the plain schema of s, which has no alternatives.
func (a *schemaAdapter) plainValue(p, s schemaNode, open []string) {
	choices := choicesOf(s)
	kind, _ := s["type"].(string)
	switch {
	case len(choices) > 0 && len(texts(choices)) == len(choices):
		kind, p["enum"] = "string", choices
	case kind != "":
	case s["properties"] != nil:
		kind = "object"
	case s["items"] != nil:
		kind = "array"
	default:
		kind = "string"
		if len(choices) > 0 {
			if _, number := choices[0].(json.Number); number {
				kind = "number"
			}
		}
	}
	p["type"] = kind
	switch kind {
	case "object":
		properties := schemaNode{}
		all, _ := s["properties"].(schemaNode)
		for name, property := range all {
			properties[name] = a.plain(property, open)
		}
		p["properties"] = properties
		required := slices.DeleteFunc(texts(s["required"]),
			func(name string) bool { return properties[name] == nil })
		if len(required) > 0 {
			p["required"] = required
		}
	case "array":
		items := s["items"]
		if several := list(items); len(several) > 0 {
			items = several[0]
		}
		p["items"] = a.plain(items, open)
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

// addProperties adds the properties of an object to others. A property with two different schemas
// may then have any value, or those that both list.
func addProperties(to, of schemaNode) {
	more, _ := of["properties"].(schemaNode)
	for name, property := range more {
		before, has := to[name]
		if !has || bytes.Equal(strictjson.Encode(before), strictjson.Encode(property)) {
			to[name] = property
			continue
		}
		one, _ := before.(schemaNode)
		other, _ := property.(schemaNode)
		some, more := choicesOf(one), choicesOf(other)
		to[name] = schemaNode{}
		if len(some) > 0 && len(more) > 0 {
			to[name] = schemaNode{"enum": append(slices.Clip(some), more...)}
		}
	}
}

// choicesOf returns the values that a schema allows, or nil if it does not list them.
func choicesOf(s schemaNode) []any {
	if value, has := s["const"]; has {
		return []any{value}
	}
	return list(s["enum"])
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
