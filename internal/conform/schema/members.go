package schema

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// withdrawn are members that only earlier drafts had, which agents still send.
var withdrawn = []string{"models", "authMethods[].vars", "authMethods[].link"}

// undefined returns the paths of members that a definition does not have, sorted.
func (e edition) undefined(name string, value any) []string {
	found := e.walk("", value, e.definitions[name])
	slices.Sort(found)
	return slices.Compact(found)
}

// walk returns the paths of members that none of the schemas of a value has.
func (e edition) walk(path string, value any, of ...*jsonschema.Schema) (found []string) {
	all := e.parts(of)
	switch v := value.(type) {
	case []any:
		var items []*jsonschema.Schema
		for _, s := range all {
			items = append(items, s.Items)
		}
		for _, element := range v {
			found = append(found, e.walk(path+"[]", element, items...)...)
		}
	case map[string]any:
		closed := func(s *jsonschema.Schema) bool { return s.Properties != nil }
		open := !slices.ContainsFunc(all, closed)
		for name, member := range v {
			var has []*jsonschema.Schema
			for _, s := range all {
				if p := s.Properties[name]; p != nil {
					has = append(has, p)
				}
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			switch {
			case name == "_meta", has == nil && open:
			case has == nil:
				found = append(found, at)
			default:
				found = append(found, e.walk(at, member, has...)...)
			}
		}
	}
	return found
}

// parts returns schemas and what they consist of: references, conditions and the parts of unions.
func (e edition) parts(schemas []*jsonschema.Schema) (all []*jsonschema.Schema) {
	for _, s := range schemas {
		if s != nil {
			named := e.definitions[strings.TrimPrefix(s.Ref, "#/$defs/")]
			parts := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
			all = append(append(all, s), e.parts(append(parts, named, s.Then, s.Else))...)
		}
	}
	return all
}
