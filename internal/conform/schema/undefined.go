package schema

import (
	"maps"
	"slices"
	"strings"
)

// UndefinedError is returned for members that neither schema has.
type UndefinedError struct {
	// Definition is the name of the message, such as InitializeResponse.
	Definition string
	// Paths name the members, such as agentCapabilities.x.
	Paths []string
}

func (e *UndefinedError) Error() string {
	return e.Definition + " does not have " + strings.Join(e.Paths, ", ")
}

// defined returns an [*UndefinedError] if value, which has the definition of this name, has members
// that neither schema has.
func (s *Schema) defined(name string, value any) error {
	found := undefinedIn(s.definitions[0], name, value)
	unstable := undefinedIn(s.definitions[1], name, value)
	maps.DeleteFunc(found, func(path string, _ bool) bool {
		return !unstable[path] || withdrawn[path]
	})
	if len(found) == 0 {
		return nil
	}
	return &UndefinedError{name, slices.Sorted(maps.Keys(found))}
}

// undefinedIn returns the paths of members that a definition of one schema does not have.
func undefinedIn(definitions map[string]any, name string, value any) map[string]bool {
	w := walk{definitions: definitions, found: map[string]bool{}}
	if definition := object(definitions[name]); definition != nil {
		w.value("", value, []map[string]any{definition})
	}
	return w.found
}

// walk looks for undefined members.
type walk struct {
	definitions map[string]any
	found       map[string]bool
}

// value looks at a value that one of the schemas describes.
func (w *walk) value(path string, value any, schemas []map[string]any) {
	all := w.parts(schemas)
	switch v := value.(type) {
	case []any:
		var items []map[string]any
		for _, s := range all {
			if of := object(s["items"]); of != nil {
				items = append(items, of)
			}
		}
		for _, element := range v {
			w.value(path+"[]", element, items)
		}
	case map[string]any:
		closed := func(s map[string]any) bool { return s["properties"] != nil }
		open := !slices.ContainsFunc(all, closed)
		for name, member := range v {
			var of []map[string]any
			for _, s := range all {
				if p, has := object(s["properties"])[name]; has {
					of = append(of, object(p))
				}
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			if of == nil && !open && name != "_meta" {
				w.found[at] = true
			} else if of != nil && name != "_meta" {
				w.value(at, member, of)
			}
		}
	}
}

// parts returns the schemas and what they consist of: references and the parts of unions.
func (w *walk) parts(schemas []map[string]any) (all []map[string]any) {
	for _, s := range schemas {
		all = append(all, s)
		ref, _ := s["$ref"].(string)
		if named := object(w.definitions[strings.TrimPrefix(ref, "#/$defs/")]); named != nil {
			all = append(all, w.parts([]map[string]any{named})...)
		}
		for _, of := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := s[of].([]any)
			for _, part := range list {
				all = append(all, w.parts([]map[string]any{object(part)})...)
			}
		}
	}
	return all
}
