package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// schema is the JSON schema of an object.
type schema struct{ *jsonschema.Schema }

// schemaOf returns the schema of a struct. Fields without omitempty are required, and null is not
// allowed.
func schemaOf[T any]() *schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: schema: %v", err))
	}
	disallowNull(s)
	return &schema{s}
}

func disallowNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, property := range s.Properties {
		disallowNull(property)
	}
	if s.Items != nil {
		disallowNull(s.Items)
	}
}

func (s *schema) encode() json.RawMessage { return strictjson.Encode(s.Schema) }

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

// decode decodes the arguments of a tool into a struct. The error is an *argumentError that lists
// everything that is wrong, so that a model can correct all of it at once.
func decode(tool string, s *schema, arguments json.RawMessage, into any) error {
	rejected := &argumentError{tool: tool}
	if !utf8.Valid(arguments) {
		rejected.add("they are not valid UTF-8")
		return rejected
	}
	object, err := strictjson.ParseObject(arguments)
	switch {
	case errors.Is(err, strictjson.ErrNotObject):
		rejected.add("they must be a JSON object")
		return rejected
	case err != nil:
		rejected.add("they are not valid JSON: %v", err)
		return rejected
	}
	given := make(map[string]any, object.Len())
	for name, raw := range object.All() {
		property, known := s.Properties[name]
		_, duplicate := given[name]
		switch {
		case !known:
			rejected.add("there is no argument %q (%s)", name, s.names())
		case duplicate:
			rejected.add("%s is given twice", name)
		default:
			value, ok := check(property, object.Field(name), raw)
			given[name] = value
			if !ok {
				rejected.add("%s must be %s", name, expected(property))
			}
		}
	}
	for _, name := range s.Required {
		if _, ok := given[name]; !ok {
			rejected.add("%s is missing: it must be %s", name, expected(s.Properties[name]))
		}
	}
	if len(rejected.problems) > 0 {
		return rejected
	}
	if err := json.Unmarshal(strictjson.Encode(given), into); err != nil {
		rejected.add("%v", err)
		return rejected
	}
	return nil
}

// names lists the arguments of a tool.
func (s *schema) names() string {
	if len(s.Properties) == 0 {
		return "the tool takes none"
	}
	return "available: " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
}

// check decodes a value and reports whether it is valid. Integers are int64.
func check(s *jsonschema.Schema, field strictjson.Field, raw json.RawMessage) (value any, ok bool) {
	if json.Unmarshal(raw, &value) != nil {
		return nil, false
	}
	resolved, err := s.CloneSchemas().Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("tools: schema: %v", err))
	}
	if resolved.Validate(value) != nil {
		return value, false
	}
	switch s.Type {
	case "integer":
		number, _ := value.(float64)
		return int64(number), math.Abs(number) <= math.MaxInt32
	default:
		return value, wellFormed(field)
	}
}

// wellFormed reports whether a value has neither lone surrogates nor a name twice.
func wellFormed(field strictjson.Field) bool {
	switch field.Raw()[0] {
	case '"':
		_, wrong := field.Text()
		return wrong == nil
	case '[':
		items, wrong := field.Items()
		return wrong == nil && !slices.ContainsFunc(items,
			func(item strictjson.Field) bool { return !wellFormed(item) })
	case '{':
		object, wrong := field.Object()
		if _, twice := object.Duplicate(); wrong != nil || twice {
			return false
		}
		for name := range object.All() {
			if !wellFormed(object.Field(name)) {
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
