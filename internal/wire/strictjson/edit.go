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
	found, err := find(raw, name)
	switch {
	case err != nil:
		return nil, nil, err
	case found.count == 0:
		return nil, raw, nil
	case found.count > 1:
		return found.in(raw), without(raw, name), nil
	default:
		return found.in(raw), found.cut(bytes.Clone(raw)), nil
	}
}

// Cut is [Take] without a copy: rest uses the memory of raw, so that neither raw nor value may be
// used after it is called. It may be called once.
func Cut(
	raw json.RawMessage, name string,
) (value json.RawMessage, rest func() json.RawMessage, err error) {
	found, err := find(raw, name)
	if err != nil {
		return nil, nil, err
	}
	return found.in(raw), func() json.RawMessage {
		switch found.count {
		case 0:
			return raw
		case 1:
			return found.cut(raw)
		default:
			return without(raw, name)
		}
	}, nil
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

// Put sets a member of an object to value, which must be valid JSON. An existing member keeps its
// position; a new one comes first. The bytes of all other members are unchanged. If the name is
// given twice, one member is left. Empty input and null are an empty object. The errors are those
// of [ParseObject].
func Put(raw json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	if isAbsent(raw) {
		raw = json.RawMessage("{}")
	}
	found, err := find(raw, name)
	if err == nil && found.count > 1 {
		raw = without(raw, name)
		found = finding{total: found.total - found.count}
	}
	if err != nil {
		return nil, err
	}
	if found.count == 1 {
		at := found.last
		out := make(json.RawMessage, 0, len(raw)-(at.end-at.value)+len(value))
		out = append(out, raw[:at.value]...)
		out = append(out, value...)
		return append(out, raw[at.end:]...), nil
	}
	brace := bytes.IndexByte(raw, '{') + 1
	out := make(json.RawMessage, 0, len(raw)+len(name)+len(value)+len(`"":,`))
	out = append(out, raw[:brace]...)
	out = AppendText(out, name)
	out = append(out, ':')
	out = append(out, value...)
	if found.total > 0 {
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
func last(object json.RawMessage, name string) json.RawMessage {
	found, err := find(object, name)
	if err != nil {
		return nil
	}
	return found.in(object)
}

// finding describes the members of an object with one name.
type finding struct {
	last     member
	count    int  // members with the name
	total    int  // all members
	preceded bool // another member comes before last
	followed bool // another member comes after last
}

func find(raw []byte, name string) (finding, error) {
	var f finding
	err := members(raw, '{', func(m member) { f.see(m, name) })
	return f, err
}

// in returns the value of the last member found, or nil.
func (f *finding) in(raw []byte) json.RawMessage {
	if f.count == 0 {
		return nil
	}
	return raw[f.last.value:f.last.end:f.last.end]
}

// see adds the next member of the object.
func (f *finding) see(m member, name string) {
	if m.name.is(name) {
		f.last, f.preceded, f.followed = m, f.total > 0, false
		f.count++
	} else {
		f.followed = true
	}
	f.total++
}

// cut returns the object raw without the one member found and one comma, if there is any. It uses
// the memory of raw and moves the shorter side.
func (f *finding) cut(raw []byte) json.RawMessage {
	start, end := f.last.start, f.last.end
	switch comma := bytes.IndexByte(raw[end:], ','); {
	case f.followed:
		end += comma + 1
	case f.preceded:
		start = bytes.LastIndexByte(raw[:start], ',')
	}
	if start > len(raw)-end {
		return append(raw[:start], raw[end:]...)
	}
	copy(raw[end-start:end], raw[:start])
	return raw[end-start:]
}

// without rebuilds a valid object without the members called name.
func without(raw []byte, name string) json.RawMessage {
	out := append(make(json.RawMessage, 0, len(raw)), '{')
	_ = members(raw, '{', func(m member) {
		if m.name.is(name) {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw[m.start:m.end]...)
	})
	return append(out, '}')
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
