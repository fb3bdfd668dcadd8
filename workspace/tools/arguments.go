package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
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

// newSchema returns the schema of a struct. Fields without omitempty are required, and the others
// follow the tags jsonschema, a description, min, max and enum. The schema does not mention that
// null and unknown members are ignored.
func newSchema[T any]() *schema {
	of, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("tools: schema: %v", err))
	}
	constrain(of, reflect.TypeFor[T]())
	s := &schema{of, map[string]*jsonschema.Resolved{}}
	for name, property := range s.Properties {
		if s.properties[name], err = property.CloneSchemas().Resolve(nil); err != nil {
			panic(fmt.Sprintf("tools: schema: %v", err))
		}
	}
	return s
}

// constrain simplifies the schema of a type, and adds what the tags of its fields say.
func constrain(s *jsonschema.Schema, of reflect.Type) {
	s.AdditionalProperties = nil
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if s.Items != nil {
		constrain(s.Items, of.Elem())
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		constrain(p, field.Type)
		if name == "path" {
			p.Description, p.MinLength = cmp.Or(p.Description, "{path}"), new(1)
		}
		p.Description = phrases.Replace(p.Description)
		if text, ok := field.Tag.Lookup("enum"); ok {
			for value := range strings.SplitSeq(text, ",") {
				p.Enum = append(p.Enum, value)
			}
		}
		bound(p, field.Tag.Get("min"), &p.Minimum, &p.MinLength, &p.MinItems)
		bound(p, field.Tag.Get("max"), &p.Maximum, &p.MaxLength, &p.MaxItems)
		if p.MinItems != nil && p.Items.Type == "string" {
			p.Items.MinLength = p.MinItems
		}
	}
}

// bound sets the bound of a number, a text or a list, unless it is "".
func bound(s *jsonschema.Schema, given string, number **float64, text, list **int) {
	n, err := strconv.Atoi(given)
	switch {
	case err != nil:
	case s.Type == "integer":
		*number = new(float64(n))
	case s.Type == "string":
		*text = &n
	default:
		*list = &n
	}
}

// decode decodes the arguments of a tool into a struct. Because models are imprecise, it accepts
// null for an optional argument, a number in a string, and arguments that do not exist. note names
// the latter, or is "". The error is an *argumentError that lists everything that is wrong, so that
// a model can correct all of it at once.
func (s *schema) decode(tool string, arguments json.RawMessage, into any) (note string, err error) {
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
			value, ok := read(property, field, &ignored)
			if !ok || s.properties[name].Validate(value) != nil {
				rejected.add("%s must be %s", name, expected(property))
			}
			given[name] = value
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
	quoted := text.JoinFunc(names[:min(len(names), maxIgnored)], ", ", strconv.Quote)
	if len(names) > maxIgnored {
		quoted += ", and more"
	}
	available := "the tool takes none"
	if len(s.Properties) > 0 {
		available = "available: " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
	}
	return "there is no argument " + quoted + " (" + available + ")"
}

// read returns a value as the tool has it: with numbers in place of texts that are numbers, and
// without members that are null or that the schema does not have, whose names it adds to ignored.
// ok is false if a text has a lone surrogate, an object has a name twice, or a number is too large.
func read(s *jsonschema.Schema, f strictjson.Field, ignored *[]string) (value any, ok bool) {
	switch f.Raw()[0] {
	case '"':
		text, wrong := f.Text()
		number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if s.Type == "integer" && err == nil {
			return number, math.Abs(number) <= math.MaxInt32
		}
		return text, wrong == nil
	case '[':
		items, wrong := f.Items()
		if wrong != nil || s.Items == nil {
			return nil, false
		}
		all := make([]any, len(items))
		for i, item := range items {
			if all[i], ok = read(s.Items, item, ignored); !ok {
				return nil, false
			}
		}
		return all, true
	case '{':
		o, wrong := f.Object()
		if _, twice := o.Duplicate(); wrong != nil || twice || s.Type != "object" {
			return nil, false
		}
		members := map[string]any{}
		for name, member := range o.Fields() {
			property, known := s.Properties[name]
			switch {
			case !known:
				*ignored = append(*ignored, text.Truncate(name, maxIgnoredName))
			case member.IsNull() && !slices.Contains(s.Required, name):
			default:
				if members[name], ok = read(property, member, ignored); !ok {
					return nil, false
				}
			}
		}
		return members, true
	}
	err := json.Unmarshal(f.Raw(), &value)
	number, isNumber := value.(float64)
	return value, err == nil && (!isNumber || math.Abs(number) <= math.MaxInt32)
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
