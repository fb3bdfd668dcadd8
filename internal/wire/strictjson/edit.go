package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Encode returns value as JSON. It does not escape <, > and &, which are common in code. It panics
// if value cannot be encoded.
func Encode(value any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("strictjson: encode %T: %v", value, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Take removes a member from an object. It returns the member's value, or nil, and the object
// without the member, in which the bytes of all other members are unchanged. If the name is given
// twice, it removes all of them and returns the last value. Empty input and null are an empty
// object, returned as {}. The errors are those of [ParseObject].
func Take(raw json.RawMessage, name string) (value, rest json.RawMessage, err error) {
	o, err := ParseObject(raw)
	if err != nil {
		return nil, nil, err
	}
	value, _ = o.Get(name)
	return value, o.Without(name), nil
}

// IsObject reports whether a well-formed value is an object.
func IsObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte{'{'})
}

// Find returns the value at a path of member names, or nil. It reads no further than the value, so
// it ignores errors after that, and if a name is given twice it uses the first.
func Find(raw json.RawMessage, path ...string) json.RawMessage {
	s := newScanner(raw)
	defer s.release()
	for _, name := range path {
		if !s.enter(name) {
			return nil
		}
	}
	start, end, err := s.value()
	if err != nil {
		return nil
	}
	return raw[start:end:end]
}

// FindText returns the text at a path of member names, or "". It is found as by [Find].
func FindText(raw json.RawMessage, path ...string) (text string) {
	_ = json.Unmarshal(Find(raw, path...), &text)
	return text
}

// Last returns the value at a path of member names, or nil. Unlike [Find] it reads all of raw, and
// if a name is given twice it uses the last, as most programs do.
func Last(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		o, err := ParseObject(raw)
		if err != nil {
			return nil
		}
		raw, _ = o.Get(name)
	}
	return raw
}

// Set sets a member of an object to value, which must be valid JSON. An existing member keeps its
// position; a new one comes first. The bytes of all other members are unchanged. If the name is
// given twice, one member is left. Anything but an object counts as an empty one.
func Set(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	o, err := ParseObject(object)
	if err != nil || o.raw == nil {
		o = Object{raw: json.RawMessage("{}")}
	}
	var at member // the last one with the name
	count := 0
	for _, m := range o.members {
		if m.name.is(name) {
			at, count = m, count+1
		}
	}
	raw := o.raw
	if count == 1 {
		return slices.Concat(raw[:at.value], value, raw[at.end:])
	} else if count > 1 {
		raw = o.Without(name)
	}
	inside := bytes.IndexByte(raw, '{') + 1
	added := append(append(AppendText(nil, name), ':'), value...)
	if count < len(o.members) {
		added = append(added, ',')
	}
	return slices.Concat(raw[:inside], added, raw[inside:])
}

// SetAt is [Set] for the value at a path of member names.
func SetAt(object, value json.RawMessage, path ...string) json.RawMessage {
	if len(path) > 1 {
		value = SetAt(Last(object, path[0]), value, path[1:]...)
	}
	return Set(object, path[0], value)
}

// Remove returns an object without the member at a path of names, if there is one.
func Remove(object json.RawMessage, path ...string) json.RawMessage {
	inner, rest, err := Take(object, path[0])
	switch {
	case err != nil || inner == nil:
		return object
	case len(path) > 1:
		return Set(object, path[0], Remove(inner, path[1:]...))
	}
	return rest
}

// Append appends values to a JSON array, whose own bytes stay as they are. Nil and null count as
// empty arrays; for anything else that is not an array, ok is false.
func Append(array json.RawMessage, values ...json.RawMessage) (longer json.RawMessage, ok bool) {
	array = bytes.TrimSpace(array)
	if len(array) == 0 || string(array) == "null" {
		array = json.RawMessage(`[]`)
	}
	end := len(array) - 1
	if array[0] != '[' || array[end] != ']' {
		return nil, false
	}
	longer = append(longer, array[:end]...)
	for i, value := range values {
		if i > 0 || len(bytes.TrimSpace(array[1:end])) > 0 {
			longer = append(longer, ',')
		}
		longer = append(longer, value...)
	}
	return append(longer, ']'), true
}
