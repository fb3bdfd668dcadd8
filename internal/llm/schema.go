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
// schemas. It ends recursion, and stops schemas that grow too large.
const maxSchemaNodes = 5000

// adaptSchema returns the schema of a tool's arguments in a form that servers accept: as the schema
// of an object, without alternatives at the top. If plain is set, it uses only the few keywords
// that Gemini knows. If possible, the result accepts everything that schema accepts. adaptSchema
// reports whether there is such a schema.
func adaptSchema(schema json.RawMessage, plain bool) (json.RawMessage, bool) {
	o, err := strictjson.ParseObject(schema)
	if err != nil {
		return nil, false
	}
	usual := !plain
	for name, value := range o.All() {
		switch name {
		case "type":
			usual = usual && string(value) == `"object"`
		case "$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const":
			usual = false
		}
	}
	if _, typed := o.Get("type"); usual && typed {
		if _, has := o.Get("properties"); has { // OpenAI and others need it
			return schema, true
		}
		with, err := strictjson.Put(schema, "properties", json.RawMessage("{}"))
		return with, err == nil
	}
	var root schemaNode
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return nil, false
	}
	a := schemaAdapter{root: root}
	flat, ok := a.object(root)
	if ok && plain {
		flat = a.plain(flat)
	}
	if !ok || a.nodes > maxSchemaNodes {
		return nil, false
	}
	return strictjson.Encode(flat), true
}

// schemaNode is a decoded JSON schema.
type schemaNode = map[string]any

// schemaAdapter adapts the parts of one schema.
type schemaAdapter struct {
	root  schemaNode
	nodes int // how many were looked at
	// open has the references that are being followed.
	open []string
}

// visit counts a schema. It reports whether there were too many.
func (a *schemaAdapter) visit() bool {
	a.nodes++
	return a.nodes <= maxSchemaNodes
}

// object returns a schema, which may be a combination of others, as the schema of one object. It
// has the properties of all, and requires those that all alternatives require. It reports whether s
// can be an object.
func (a *schemaAdapter) object(s schemaNode) (schemaNode, bool) {
	if !a.visit() || !mayBeObject(s["type"]) {
		return nil, false
	}
	if ref, referring := s["$ref"].(string); referring {
		target, close := a.follow(ref)
		defer close()
		own := maps.Clone(s)
		delete(own, "$ref")
		s = schemaNode{"allOf": []any{own}}
		if target != nil {
			s["allOf"] = []any{own, target}
		}
	}
	flat := maps.Clone(s)
	for _, name := range []string{"allOf", "anyOf", "oneOf", "not", "enum", "const"} {
		delete(flat, name)
	}
	properties := schemaNode{}
	addProperties(properties, s)
	required := texts(flat["required"])
	for _, each := range list(s["allOf"]) {
		part, ok := a.alternative(each)
		if !ok {
			return nil, false
		}
		for _, name := range []string{"description", "title", "$defs", "definitions"} {
			if value, has := part[name]; has && flat[name] == nil {
				flat[name] = value
			}
		}
		addProperties(properties, part)
		required = append(required, texts(part["required"])...)
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		common, ok := a.oneOf(flat, properties, list(s[name]))
		if !ok {
			return nil, false
		}
		required = append(required, common...)
	}
	flat["type"], flat["properties"] = "object", properties
	delete(flat, "required")
	slices.Sort(required)
	if required = slices.Compact(required); len(required) > 0 {
		flat["required"] = required
	}
	return flat, true
}

// oneOf adds the properties of alternatives to those of the object flat, and describes which of them
// are required. It returns those that all alternatives require, and reports whether there can be an
// object.
func (a *schemaAdapter) oneOf(flat, properties schemaNode, alternatives []any) (common []string, ok bool) {
	var groups []string
	for _, each := range alternatives {
		part, ok := a.alternative(each)
		if !ok {
			continue
		}
		needed := texts(part["required"])
		if groups == nil {
			common = needed
		}
		common = intersection(common, needed)
		addProperties(properties, part)
		groups = append(groups, strings.Join(needed, " and "))
	}
	if len(groups) > 1 && !slices.Contains(groups, "") {
		annotate(flat, "One of these is required: "+strings.Join(groups, "; or ")+".")
	}
	return common, groups != nil || len(alternatives) == 0
}

// alternative returns a part of a combined schema as the schema of an object.
func (a *schemaAdapter) alternative(part any) (schemaNode, bool) {
	switch part := part.(type) {
	case schemaNode:
		return a.object(part)
	case bool:
		return schemaNode{}, part
	}
	return nil, false
}

// follow returns the schema that a reference refers to, or nil if it is unknown or already being
// followed. The caller must call close when it has used it.
func (a *schemaAdapter) follow(ref string) (target schemaNode, close func()) {
	none := func() {}
	path, local := strings.CutPrefix(ref, "#")
	if !local || slices.Contains(a.open, ref) {
		return nil, none
	}
	var at any = a.root
	for _, name := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		within, _ := at.(schemaNode)
		at = within[name]
	}
	target, _ = at.(schemaNode)
	if target == nil {
		return nil, none
	}
	a.open = append(a.open, ref)
	return target, func() { a.open = a.open[:len(a.open)-1] }
}

// plainKeywords are copied to a plain schema as they are.
var plainKeywords = []string{"description", "minimum", "maximum", "minItems", "maxItems"}

// plain returns a schema with only the keywords that Gemini knows:
// https://ai.google.dev/api/caching#Schema.
func (a *schemaAdapter) plain(schema any) schemaNode {
	s, _ := schema.(schemaNode)
	if !a.visit() || s == nil {
		return schemaNode{"type": "string"} // anything
	}
	if ref, referring := s["$ref"].(string); referring {
		target, close := a.follow(ref)
		defer close()
		if target == nil {
			return schemaNode{"type": "object"}
		}
		s = maps.Clone(s)
		delete(s, "$ref")
		fill(s, target)
	}
	if s["allOf"] != nil {
		if flat, ok := a.object(s); ok && len(flat["properties"].(schemaNode)) > 0 {
			s = flat
		} else if parts := list(s["allOf"]); len(parts) > 0 { // not of objects
			first, _ := parts[0].(schemaNode)
			s = maps.Clone(s)
			delete(s, "allOf")
			fill(s, first)
			return a.plain(s)
		}
	}
	p := schemaNode{}
	for _, name := range plainKeywords {
		if value, has := s[name]; has {
			p[name] = value
		}
	}
	kinds := texts(s["type"])
	if slices.Contains(kinds, "null") {
		p["nullable"] = true
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "null" })
	}
	some := a.plainAlternatives(p, s, kinds)
	switch {
	case len(some) == 0 || len(kinds) == 1:
		a.plainValue(p, s, kinds)
	case len(some) == 1:
		fill(p, some[0].(schemaNode))
	default:
		p["anyOf"] = some
	}
	return p
}

// fill adds the members of a schema to another one that has no members of these names.
func fill(to, from schemaNode) {
	for name, value := range from {
		if _, own := to[name]; !own {
			to[name] = value
		}
	}
}

// plainAlternatives returns the plain schemas of the alternatives of s, of which each type is one if
// there are several. It marks p, the plain schema of s, if null is one.
func (a *schemaAdapter) plainAlternatives(p, s schemaNode, kinds []string) (some []any) {
	alternatives := append(list(s["anyOf"]), list(s["oneOf"])...)
	if len(kinds) > 1 {
		alternatives = nil
		for _, kind := range kinds {
			one := maps.Clone(s)
			one["type"] = kind
			delete(one, "description")
			alternatives = append(alternatives, one)
		}
	}
	for _, each := range alternatives {
		if one, _ := each.(schemaNode); one["type"] == "null" {
			p["nullable"] = true
		} else {
			some = append(some, a.plain(each))
		}
	}
	return some
}

// plainValue completes p, the plain schema of s, which has at most one type and no alternatives.
func (a *schemaAdapter) plainValue(p, s schemaNode, kinds []string) {
	choices := choicesOf(s)
	if len(choices) > 0 && areTexts(choices) {
		p["type"], p["enum"] = "string", choices
		return
	} else if len(choices) > 0 {
		annotate(p, "One of: "+strings.Trim(string(strictjson.Encode(choices)), "[]"))
	}
	kind := "string"
	switch {
	case len(kinds) > 0:
		kind = kinds[0]
	case s["properties"] != nil:
		kind = "object"
	case s["items"] != nil:
		kind = "array"
	case len(choices) > 0:
		if _, number := choices[0].(json.Number); number {
			kind = "number"
		}
	}
	p["type"] = kind
	switch kind {
	case "object":
		a.plainProperties(p, s)
	case "array":
		items := s["items"]
		if several := list(items); len(several) > 0 {
			items = several[0]
		}
		p["items"] = a.plain(items)
	}
}

// plainProperties adds the properties of the object that s describes to its plain schema.
func (a *schemaAdapter) plainProperties(p, s schemaNode) {
	properties := schemaNode{}
	all, _ := s["properties"].(schemaNode)
	for name, property := range all {
		properties[name] = a.plain(property)
	}
	p["properties"] = properties
	var required []string
	for _, name := range texts(s["required"]) {
		if properties[name] != nil {
			required = append(required, name)
		}
	}
	if required != nil {
		p["required"] = required
	}
}

// addProperties adds the properties of an object to others. A property with two different schemas
// may then have either.
func addProperties(to schemaNode, of schemaNode) {
	more, _ := of["properties"].(schemaNode)
	for name, property := range more {
		before, has := to[name]
		switch {
		case !has:
			to[name] = property
		case bytes.Equal(strictjson.Encode(before), strictjson.Encode(property)):
		default:
			to[name] = either(before, property)
		}
	}
}

// either returns a schema that accepts whatever either of two schemas accepts.
func either(a, b any) schemaNode {
	one, _ := a.(schemaNode)
	other, _ := b.(schemaNode)
	x, y := choicesOf(one), choicesOf(other)
	if x != nil && areTexts(x) && y != nil && areTexts(y) {
		both, all := maps.Clone(one), slices.Clone(x)
		delete(both, "const")
		for _, choice := range y {
			if !slices.Contains(all, choice) {
				all = append(all, choice)
			}
		}
		both["enum"] = all
		return both
	}
	if some := list(one["anyOf"]); some != nil && len(one) == 1 {
		return schemaNode{"anyOf": append(slices.Clone(some), b)}
	}
	return schemaNode{"anyOf": []any{a, b}}
}

// choicesOf returns the values that a schema allows, or nil if it does not list them.
func choicesOf(s schemaNode) []any {
	if value, has := s["const"]; has {
		return []any{value}
	}
	return list(s["enum"])
}

func areTexts(choices []any) bool { return len(texts(choices)) == len(choices) }

// annotate adds a sentence to the description of a schema.
func annotate(s schemaNode, sentence string) {
	before, _ := s["description"].(string)
	s["description"] = strings.TrimSpace(before + " " + sentence)
}

// mayBeObject reports whether a member type allows objects.
func mayBeObject(kind any) bool {
	return kind == nil || slices.Contains(texts(kind), "object")
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

func intersection(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
