package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// schema is the JSON schema of an object. It is immutable once it is made.
type schema struct {
	*jsonschema.Schema
	properties map[string]*jsonschema.Resolved
}

// newSchema returns the schema of a struct. constrain, unless nil, adds to it. Fields without
// omitempty are required. The schema does not mention that null and unknown members are ignored.
func newSchema[T any](constrain func(*schema)) *schema {
	of, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: schema: %v", err))
	}
	simplify(of)
	s := &schema{of, map[string]*jsonschema.Resolved{}}
	if _, ok := s.Properties["path"]; ok {
		s.describe("path", pathText)
	}
	if constrain != nil {
		constrain(s)
	}
	for name, property := range s.Properties {
		if s.properties[name], err = property.CloneSchemas().Resolve(nil); err != nil {
			panic(fmt.Sprintf("tools: schema: %v", err))
		}
	}
	return s
}

func simplify(s *jsonschema.Schema) {
	s.AdditionalProperties = nil
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, property := range s.Properties {
		simplify(property)
	}
	if s.Items != nil {
		simplify(s.Items)
	}
}

func (s *schema) encode() json.RawMessage { return strictjson.Encode(s.Schema) }

// pathText says what a path may be.
const pathText = "absolute or in the working directory"

// describe sets the description of an argument. The default is pathText for path, and the field's
// tag for others.
func (s *schema) describe(name, text string) { s.Properties[name].Description = text }

// atLeast sets the minimum of a number.
func (s *schema) atLeast(name string, minimum float64) { s.Properties[name].Minimum = &minimum }

// atMost sets the maximum of a number.
func (s *schema) atMost(name string, maximum float64) { s.Properties[name].Maximum = &maximum }

// notEmpty disallows empty strings.
func (s *schema) notEmpty(names ...string) {
	for _, name := range names {
		one := 1
		s.Properties[name].MinLength = &one
	}
}

// notEmptyList disallows an empty list of strings, and empty strings in it.
func (s *schema) notEmptyList(name string) {
	one := 1
	s.Properties[name].MinItems, s.Properties[name].Items.MinLength = &one, &one
}

// atMostItems sets the maximum length of a list.
func (s *schema) atMostItems(name string, maximum int) { s.Properties[name].MaxItems = &maximum }

// oneOf sets the values of a string.
func (s *schema) oneOf(name string, values ...string) {
	for _, value := range values {
		s.Properties[name].Enum = append(s.Properties[name].Enum, value)
	}
}

// decode decodes the arguments of a tool into a struct. Because models are imprecise, it accepts
// null for an optional argument, a number in a string, and arguments that do not exist. note names
// the latter, or is "". The error is an *argumentError that lists everything that is wrong, so that
// a model can correct all of it at once.
func (s *schema) decode(tool string, arguments json.RawMessage,
	into any) (note string, err error) {
	rejected := &argumentError{tool: tool}
	if !utf8.Valid(arguments) {
		rejected.add("they are not valid UTF-8")
		return "", rejected
	}
	object, err := strictjson.ParseObject(arguments)
	switch {
	case errors.Is(err, strictjson.ErrNotObject):
		rejected.add("they must be a JSON object")
		return "", rejected
	case err != nil:
		rejected.add("they are not valid JSON: %v", err)
		return "", rejected
	}
	var ignored []string
	given := make(map[string]any, object.Len())
	seen := make(map[string]bool, object.Len())
	for name, field := range object.Fields() {
		property, known := s.Properties[name]
		switch {
		case seen[name]:
			rejected.add("%s is given twice", name)
		case !known && s.misspelled(name) != "":
			rejected.add("there is no argument %q: write %s", name, s.misspelled(name))
		case !known:
			ignored = append(ignored, text.Truncate(name, maxIgnoredName))
		case field.IsNull() && !slices.Contains(s.Required, name):
		default:
			value, unknown, ok := s.check(name, field)
			given[name] = value
			ignored = append(ignored, unknown...)
			if !ok {
				rejected.add("%s must be %s", name, expected(property))
			}
		}
		seen[name] = true
	}
	for _, name := range s.Required {
		if !seen[name] {
			rejected.add("%s is missing: it must be %s", name, expected(s.Properties[name]))
		}
	}
	if len(ignored) > 0 {
		note = s.noSuch(ignored)
	}
	if len(rejected.problems) > 0 {
		if note != "" {
			rejected.add("%s", note)
		}
		return "", rejected
	}
	if json.Unmarshal(strictjson.Encode(given), into) != nil { // its error names Go types
		rejected.add("they do not match the schema of the tool")
		return "", rejected
	}
	return note, nil
}

// misspelled returns the argument whose name differs from name only in case, or "". Ignoring such a
// name would mislead anybody whose reader of the arguments does not distinguish case.
func (s *schema) misspelled(name string) string {
	for known := range s.Properties {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

const (
	// maxIgnored is the most names that noSuch lists, and maxIgnoredName the most bytes of each.
	maxIgnored     = 10
	maxIgnoredName = 100
)

// noSuch returns a note that there are no arguments with these names.
func (s *schema) noSuch(names []string) string {
	var quoted []string
	for _, name := range names[:min(len(names), maxIgnored)] {
		quoted = append(quoted, strconv.Quote(name))
	}
	if len(names) > maxIgnored {
		quoted = append(quoted, "and more")
	}
	return "there is no argument " + strings.Join(quoted, ", ") + " (" + s.names() + ")"
}

// names lists the arguments of a tool.
func (s *schema) names() string {
	if len(s.Properties) == 0 {
		return "the tool takes none"
	}
	return "available: " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
}

// check decodes the value of a property and reports whether it is valid. Integers are int64.
// unknown names the members of objects in it that the schema does not have.
func (s *schema) check(name string,
	field strictjson.Field) (value any, unknown []string, ok bool) {
	if json.Unmarshal(field.Raw(), &value) != nil {
		return nil, nil, false
	}
	value, unknown = normal(s.Properties[name], value)
	if s.properties[name].Validate(value) != nil {
		return value, unknown, false
	}
	if number, ok := value.(float64); ok {
		return int64(number), unknown, math.Abs(number) <= math.MaxInt32
	}
	return value, unknown, wellFormed(s.Properties[name], field)
}

// normal returns a value in which numbers in strings are replaced by numbers, and optional null
// members of objects are removed. It also removes members that the schema does not have, and
// returns their names.
func normal(s *jsonschema.Schema, value any) (_ any, unknown []string) {
	switch value := value.(type) {
	case string:
		var number float64
		if s.Type == "integer" && strings.TrimSpace(value) != "null" &&
			json.Unmarshal([]byte(value), &number) == nil {
			return number, nil
		}
	case []any:
		for i := range value {
			if s.Items != nil {
				var more []string
				value[i], more = normal(s.Items, value[i])
				unknown = append(unknown, more...)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			property, known := s.Properties[name]
			switch {
			case !known:
				unknown = append(unknown, text.Truncate(name, maxIgnoredName))
				delete(value, name)
			case value[name] == nil && !slices.Contains(s.Required, name):
				delete(value, name)
			default:
				var more []string
				value[name], more = normal(property, value[name])
				unknown = append(unknown, more...)
			}
		}
	}
	return value, unknown
}

// wellFormed reports whether a value, which is valid, has neither lone surrogates nor a name twice.
// It does not look into members that the schema does not have, because parsing each level of a deep
// value again would take long.
func wellFormed(s *jsonschema.Schema, field strictjson.Field) bool {
	switch field.Raw()[0] {
	case '"':
		_, wrong := field.Text()
		return wrong == nil
	case '[':
		items, wrong := field.Items()
		return wrong == nil && !slices.ContainsFunc(items,
			func(item strictjson.Field) bool { return !wellFormed(s.Items, item) })
	case '{':
		object, wrong := field.Object()
		if _, twice := object.Duplicate(); wrong != nil || twice {
			return false
		}
		for name, member := range object.Fields() {
			if of := s.Properties[name]; of != nil && !wellFormed(of, member) {
				return false
			}
		}
		return true
	default:
		return true
	}
}

// expected describes the valid values of an argument.
func expected(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return fmt.Sprintf("one of %s", strictjson.Encode(s.Enum))
	case s.Type == "string" && s.MinLength != nil:
		return "a string that is not empty"
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("an integer from %v to %v", *s.Minimum, *s.Maximum)
	case s.Type == "integer" && s.Minimum != nil:
		return fmt.Sprintf("an integer of at least %v", *s.Minimum)
	case s.Type == "integer":
		return "an integer"
	case s.Type == "array" && s.MinItems != nil:
		return "a list that is not empty, each item " + expected(s.Items)
	case s.Type == "array" && s.MaxItems != nil:
		return fmt.Sprintf("a list of at most %d items, each %s", *s.MaxItems, expected(s.Items))
	case s.Type == "array":
		return "a list, each item " + expected(s.Items)
	case s.Type == "object":
		return "an object with " + strings.Join(s.Required, ", ")
	default:
		return "a " + s.Type
	}
}
