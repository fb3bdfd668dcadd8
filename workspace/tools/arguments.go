package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// decode reads the arguments of a tool into a struct. It refuses what the schema does not know, and says
// all that is wrong at once, so that a model can mend it in one go. The error is an *[ArgumentError].
func decode(tool string, s *schema, arguments json.RawMessage, into any) error {
	refused := &ArgumentError{Tool: tool}
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	members, why := readObject(arguments)
	if why != "" {
		refused.Problems = []string{why}
		return refused
	}
	given := make(map[string]json.RawMessage)
	for _, m := range members {
		known, ok := s.Properties[m.name]
		_, twice := given[m.name]
		switch {
		case !ok:
			refused.add("there is no argument %q: there %s", m.name, s.names())
		case twice:
			refused.add("%s is given twice", m.name)
		default:
			given[m.name] = m.value
			if why := check(known, m.value); why != "" {
				refused.add("%s %s", m.name, why)
			}
		}
	}
	for _, name := range s.Required {
		if _, ok := given[name]; !ok {
			refused.add("%s is missing: give a %s", name, s.Properties[name].Type)
		}
	}
	if len(refused.Problems) > 0 {
		return refused
	}
	whole := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		whole[name] = plain(s.Properties[name], value)
	}
	if err := json.Unmarshal(encode(whole), into); err != nil {
		refused.add("%v", err)
		return refused
	}
	return nil
}

// names lists the arguments of a tool.
func (s *schema) names() string {
	switch names := slices.Sorted(maps.Keys(s.Properties)); len(names) {
	case 0:
		return "are none"
	case 1:
		return "is only " + names[0]
	default:
		return "are " + strings.Join(names, ", ")
	}
}

// member is one of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// readObject reads the members of an object in their order. why says what is wrong with it, "" if nothing is.
func readObject(text json.RawMessage) (members []member, why string) {
	if !utf8.Valid(text) {
		return nil, "the arguments are not valid UTF-8"
	}
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil {
		return nil, "the arguments are not JSON: " + err.Error()
	}
	if open != json.Delim('{') {
		return nil, "the arguments must be a JSON object"
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, "the arguments are not JSON: " + err.Error()
		}
		members = append(members, member{name.(string), value})
	}
	if _, err := d.Token(); err != nil {
		return nil, "the arguments are not JSON: " + err.Error()
	}
	if d.More() {
		return nil, "there is more behind the object of the arguments"
	}
	return members, ""
}

// check says what is wrong with a value, "" if nothing is. A schema here is of a string, an integer or a boolean.
func check(s *jsonschema.Schema, value json.RawMessage) string {
	var is any
	if err := json.Unmarshal(value, &is); err != nil {
		return "is not JSON: " + err.Error()
	}
	switch x := is.(type) {
	case string:
		if s.Type == "string" {
			return checkString(s, x, value)
		}
	case float64:
		if s.Type == "integer" {
			return checkInteger(s, x)
		}
	case bool:
		if s.Type == "boolean" {
			return ""
		}
	}
	if is == nil {
		return "is null: leave it out, or give " + article(s.Type)
	}
	return "must be " + article(s.Type)
}

func article(kind string) string {
	if kind == "integer" {
		return "an integer"
	}
	return "a " + kind
}

func checkString(s *jsonschema.Schema, text string, value json.RawMessage) string {
	switch {
	case hasLoneSurrogate(value):
		return "has half of a surrogate pair, which is no character"
	case s.MinLength != nil && text == "":
		return "is empty"
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(text)):
		return fmt.Sprintf("must be one of %s", encode(s.Enum))
	default:
		return ""
	}
}

func checkInteger(s *jsonschema.Schema, n float64) string {
	switch {
	case n != math.Trunc(n) || math.Abs(n) > math.MaxInt32:
		return "must be an integer of at most 2147483647"
	case s.Minimum != nil && n < *s.Minimum:
		return fmt.Sprintf("must be at least %v", *s.Minimum)
	case s.Maximum != nil && n > *s.Maximum:
		return fmt.Sprintf("must be at most %v", *s.Maximum)
	default:
		return ""
	}
}

// plain writes an integer without a fraction or an exponent, which JSON has and Go does not read.
func plain(s *jsonschema.Schema, value json.RawMessage) json.RawMessage {
	if s.Type != "integer" {
		return value
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return value
	}
	return json.RawMessage(strconv.FormatInt(int64(n), 10))
}

// hasLoneSurrogate reports whether a JSON string escapes one half of a surrogate pair without the other.
func hasLoneSurrogate(text json.RawMessage) bool {
	high := false // the last escape was a first half
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		if text[i] != 'u' {
			if high {
				return true
			}
			continue
		}
		unit, _ := strconv.ParseUint(string(text[i+1:i+5]), 16, 16)
		i += 4
		second := unit >= 0xdc00 && unit < 0xe000
		if high != second {
			return true
		}
		high = unit >= 0xd800 && unit < 0xdc00
	}
	return high
}

// schema is a JSON schema of an object.
type schema struct{ *jsonschema.Schema }

// schemaOf is the schema of a struct: what is not omitempty is required, and nothing may be null.
func schemaOf[T any]() *schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: schema: %v", err))
	}
	neverNull(s)
	return &schema{s}
}

func neverNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, property := range s.Properties {
		neverNull(property)
	}
	if s.Items != nil {
		neverNull(s.Items)
	}
}

func (s *schema) encode() json.RawMessage { return encode(s.Schema) }

// atLeast bounds a number.
func (s *schema) atLeast(name string, least float64) { s.Properties[name].Minimum = &least }

// atMost bounds a number.
func (s *schema) atMost(name string, most float64) { s.Properties[name].Maximum = &most }

// notEmpty refuses an empty string.
func (s *schema) notEmpty(names ...string) {
	for _, name := range names {
		one := 1
		s.Properties[name].MinLength = &one
	}
}

// oneOf lists the values of a string, the default first.
func (s *schema) oneOf(name string, values ...string) {
	for _, value := range values {
		s.Properties[name].Enum = append(s.Properties[name].Enum, value)
	}
	s.Properties[name].Default = encode(values[0])
}
