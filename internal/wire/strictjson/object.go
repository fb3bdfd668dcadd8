package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// MaxItems is the most entries of an array, and the most members of an object. Longer ones are
// refused, because an entry takes a hundred times more memory than the two bytes that it needs in a
// request.
const MaxItems = 10_000

// ErrTooManyMembers is returned for an object with more than [MaxItems] members.
var ErrTooManyMembers = fmt.Errorf("an object has more than %d members", MaxItems)

// Object is a JSON object with its members in the order in which they were sent. The zero Object is
// empty. An Object is immutable.
type Object struct {
	at      place
	raw     json.RawMessage
	members []member
}

// ParseObject parses an object. Empty input and null are an empty object. The error is
// [ErrNotObject] for another kind of value, [ErrTooManyMembers] or [ErrTooDeep]; any other error
// means that raw is not JSON, and does not quote it. Duplicate names are not an error here: see
// [Object.Duplicate] and [Check].
func ParseObject(raw json.RawMessage) (Object, error) {
	if len(raw) == 0 || string(bytes.Trim(raw, " \t\r\n")) == "null" {
		return Object{}, nil
	}
	return parseObject(raw, place{})
}

// Beginning returns the members at the beginning of an object, up to one that is malformed or not
// complete. The value of that one is empty, but not nil.
func Beginning(raw json.RawMessage) Object {
	o := Object{raw: raw}
	_ = members(raw, '{', func(m member) {
		if m.end == len(raw) { // perhaps the value goes on
			m.value, m.end = 0, 0
		}
		o.members = append(o.members, m)
	})
	return o
}

func parseObject(raw json.RawMessage, at place) (Object, error) {
	o := Object{at: at, raw: raw, members: make([]member, 0, 4)}
	n := 0
	err := members(raw, '{', func(m member) {
		if n++; n <= MaxItems {
			o.members = append(o.members, m)
		}
	})
	if err == nil && n > MaxItems {
		err = ErrTooManyMembers
	}
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// Get returns the value of a member as it was sent. If the name is given twice the last one counts.
func (o Object) Get(name string) (value json.RawMessage, present bool) {
	f := o.Field(name)
	return f.raw, f.Present()
}

// Field returns the member with the given name, which may be absent.
func (o Object) Field(name string) Field {
	f := Field{at: o.at.member(name)}
	for i := len(o.members) - 1; i >= 0; i-- {
		if m := o.members[i]; m.name.is(name) {
			f.raw = o.raw[m.value:m.end:m.end]
			break
		}
	}
	return f
}

// Without returns the object without the members called name, each with a comma. All other bytes
// are as they were sent. The empty Object is {}.
func (o Object) Without(name string) json.RawMessage {
	switch {
	case o.raw == nil:
		return json.RawMessage("{}")
	case len(o.members) == 0:
		return o.raw
	}
	left := append(make(json.RawMessage, 0, len(o.raw)), o.raw[:o.members[0].start]...)
	end, first := 0, true
	for _, m := range o.members {
		if !m.name.is(name) {
			if first {
				end = m.start // no comma comes before it
			}
			left, first = append(left, o.raw[end:m.end]...), false
		}
		end = m.end
	}
	return append(left, o.raw[end:]...)
}

// All yields all members in order, including duplicates.
func (o Object) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, m := range o.members {
			if !yield(string(m.name.text()), o.raw[m.value:m.end:m.end]) {
				return
			}
		}
	}
}

// Fields yields all members in order, including duplicates. For many members it is much faster than
// [Object.Field].
func (o Object) Fields() iter.Seq2[string, Field] {
	return func(yield func(string, Field) bool) {
		for _, m := range o.members {
			name := string(m.name.text())
			if !yield(name, Field{o.at.member(name), o.raw[m.value:m.end:m.end]}) {
				return
			}
		}
	}
}

// Len returns the number of members, including duplicates.
func (o Object) Len() int { return len(o.members) }

// Duplicate returns the first name that is given twice.
func (o Object) Duplicate() (name string, ok bool) {
	var seen nameSet
	for _, m := range o.members {
		if text := m.name.text(); !seen.add(text) {
			return string(text), true
		}
	}
	return "", false
}

// nameSet is a set of names. Most objects are small, so it compares the first few one by one.
type nameSet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add adds name, which it keeps, and reports whether it was new.
func (s *nameSet) add(name []byte) bool {
	for _, have := range s.few[:s.n] {
		if string(have) == string(name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if _, have := s.many[string(name)]; have {
		return false
	}
	if s.many == nil {
		s.many = make(map[string]struct{})
	}
	s.many[string(name)] = struct{}{}
	return true
}

// Field is a value and its position in a request: a member of an object, which may be absent, or an
// entry of an array. It is immutable.
//
// The methods that read it return the value or violations. An absent field is a [Required]
// violation and null is a [Null] violation; use [Field.Present] or [Field.IsNull] first where they
// are allowed.
type Field struct {
	at  place
	raw json.RawMessage
}

// Present reports whether the field was sent, even as null.
func (f Field) Present() bool { return f.raw != nil }

// IsNull reports whether the field was sent as null.
func (f Field) IsNull() bool { return string(f.raw) == "null" }

// Raw returns the value as it was sent, or nil.
func (f Field) Raw() json.RawMessage { return f.raw }

// Masked returns f such that violations of it and of the fields in it contain no values. Use it for
// secrets.
func (f Field) Masked() Field {
	f.at.masked = true
	return f
}

// Refuse returns a violation of the field, with its value unless it is masked.
func (f Field) Refuse(reason Reason) Violation {
	var echo any
	if f.raw != nil && !f.at.masked {
		echo = f.echo()
	}
	v := NewViolation(f.at.path, echo, reason)
	if f.at.entry {
		v = v.At(f.at.index)
	}
	return v
}

// echo returns the value in a form that every JSON parser accepts. Some reject a whole message
// because of one lone surrogate, so a string has U+FFFD instead, and any other value that may
// contain one is omitted.
func (f Field) echo() any {
	if f.raw[0] == '"' {
		text, _ := unquote(f.raw)
		return string(text)
	}
	if bytes.Contains(f.raw, []byte(`\ud`)) || bytes.Contains(f.raw, []byte(`\uD`)) {
		return nil
	}
	return f.raw
}

// Text reads a string.
func (f Field) Text() (string, []Violation) {
	if bad := f.want('"', "a string"); bad != nil {
		return "", bad
	}
	text, err := unquote(f.raw)
	if err != nil {
		return "", []Violation{f.Refuse(Encoding)}
	}
	return string(text), nil
}

// Object reads an object. The paths of its fields begin with that of f.
func (f Field) Object() (Object, []Violation) {
	if bad := f.want('{', "an object"); bad != nil {
		return Object{}, bad
	}
	o, err := parseObject(f.raw, f.at)
	if err != nil {
		return Object{}, []Violation{f.Refuse(Type).Expecting("an object")}
	}
	return o, nil
}

// Items reads an array of any values.
func (f Field) Items() ([]Field, []Violation) {
	const wanted = "an array"
	if bad := f.want('[', wanted); bad != nil {
		return nil, bad
	}
	var items []Field
	array, n := place{path: f.at.full(), masked: f.at.masked}, 0
	err := members(f.raw, '[', func(m member) {
		if n < MaxItems {
			items = append(items, Field{array.item(n), f.raw[m.value:m.end:m.end]})
		}
		n++
	})
	switch {
	case err != nil:
		return nil, []Violation{f.Refuse(Type).Expecting(wanted)}
	case n > MaxItems:
		return nil, []Violation{f.Refuse(TooLong).Expecting(strconv.Itoa(MaxItems) + " entries")}
	}
	return items, nil
}

// want checks that the value begins with a byte. kind describes the wanted value.
func (f Field) want(first byte, kind string) []Violation {
	switch {
	case !f.Present():
		return []Violation{f.Refuse(Required)}
	case f.IsNull():
		return []Violation{f.Refuse(Null)}
	case f.raw[0] != first:
		return []Violation{f.Refuse(Type).Expecting(kind)}
	default:
		return nil
	}
}

// maxPath bounds the length of a path in a violation, in bytes.
const maxPath = 1024

// place is the position of a value: its path from the outermost object, or for an entry of an array
// the array's path and the index.
type place struct {
	path   string
	index  int
	entry  bool
	masked bool
}

// member returns the place of a member of the object at p.
func (p place) member(name string) place {
	path := p.full()
	if path != "" {
		path += "."
	}
	return place{path: bounded(path + name), masked: p.masked}
}

// item returns the place of entry i of the array at p.
func (p place) item(i int) place {
	return place{path: p.full(), index: i, entry: true, masked: p.masked}
}

// full returns p as one path: "mcpServers[0]".
func (p place) full() string {
	if !p.entry {
		return p.path
	}
	return bounded(p.path + "[" + strconv.Itoa(p.index) + "]")
}

func bounded(path string) string {
	if len(path) <= maxPath {
		return path
	}
	return strings.ToValidUTF8(path[:maxPath], "") + "…"
}
