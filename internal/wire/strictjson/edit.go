package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	if isAbsent(raw) {
		return nil, json.RawMessage("{}"), nil
	}
	c := cutter{raw: raw, name: name}
	if err := members(raw, '{', c.see); err != nil {
		return nil, nil, err
	}
	return c.value, c.rest(), nil
}

// cutter cuts the members with a name out of an object, each with a comma.
type cutter struct {
	raw   json.RawMessage
	name  string
	value json.RawMessage // of the last of them, nil if there is none
	out   []byte          // what is left of raw[:at]
	at    int
	kept  int // the end of the last member that is left, or of one that was cut out behind it
}

// see looks at the next member of the object.
func (c *cutter) see(m member) {
	switch cut := m.name.is(c.name); {
	case cut && c.kept > 0:
		c.out = append(c.out, c.raw[c.at:c.kept]...)
		c.at, c.kept = m.end, m.end
	case cut && c.value == nil:
		c.out = append(make([]byte, 0, len(c.raw)), c.raw[:m.start]...)
	case !cut && c.kept == 0 && c.value != nil:
		c.at, c.kept = m.start, m.end
		return
	case !cut:
		c.kept = m.end
		return
	}
	c.at, c.value = m.end, c.raw[m.value:m.end:m.end]
}

// rest returns what is left of the object, after its last member.
func (c *cutter) rest() json.RawMessage {
	if c.value == nil {
		return c.raw
	}
	return append(c.out, c.raw[c.at:]...)
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

// Put sets a member of an object to value, which must be valid JSON. An existing member keeps its
// position; a new one comes first. The bytes of all other members are unchanged. If the name is
// given twice, one member is left. Empty input and null are an empty object. The errors are those
// of [ParseObject].
func Put(raw json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	if isAbsent(raw) {
		raw = json.RawMessage("{}")
	}
	var (
		at           member // the last one with the name
		count, total int
	)
	err := members(raw, '{', func(m member) {
		total++
		if m.name.is(name) {
			at = m
			count++
		}
	})
	if err != nil {
		return nil, err
	}
	if count == 1 {
		out := make(json.RawMessage, 0, len(raw)-(at.end-at.value)+len(value))
		out = append(out, raw[:at.value]...)
		out = append(out, value...)
		return append(out, raw[at.end:]...), nil
	}
	if count > 1 {
		_, raw, _ = Take(raw, name)
	}
	brace := bytes.IndexByte(raw, '{') + 1
	out := make(json.RawMessage, 0, len(raw)+len(name)+len(value)+len(`"":,`))
	out = append(out, raw[:brace]...)
	out = AppendText(out, name)
	out = append(out, ':')
	out = append(out, value...)
	if total > count {
		out = append(out, ',')
	}
	return append(out, raw[brace:]...), nil
}

// Set is [Put] for an object that need not be valid: anything but an object counts as an empty one.
func Set(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	with, err := Put(object, name, value)
	if err != nil {
		with, _ = Put(nil, name, value)
	}
	return with
}

// SetAt is [Set] for the value at a path of member names.
func SetAt(object, value json.RawMessage, path ...string) json.RawMessage {
	if len(path) > 1 {
		value = SetAt(last(object, path[0]), value, path[1:]...)
	}
	return Set(object, path[0], value)
}

// Remove returns an object without the member at a path of names, if there is one.
func Remove(object json.RawMessage, path ...string) json.RawMessage {
	inner := last(object, path[0])
	switch {
	case inner == nil:
		return object
	case len(path) > 1:
		return Set(object, path[0], Remove(inner, path[1:]...))
	}
	_, rest, _ := Take(object, path[0]) // it is an object
	return rest
}

// last returns the value of a member, or nil. If the name is given twice, it is the last one.
func last(object json.RawMessage, name string) (value json.RawMessage) {
	err := members(object, '{', func(m member) {
		if m.name.is(name) {
			value = object[m.value:m.end:m.end]
		}
	})
	if err != nil {
		return nil
	}
	return value
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
