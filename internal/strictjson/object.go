package strictjson

import (
	"encoding/json"
	"iter"
)

// Object is a JSON object, its members in the order they were sent. The zero
// Object has none. It is immutable.
type Object struct {
	at      place
	raw     json.RawMessage
	members []member
}

// ParseObject reads the object raw. Nothing and null read as an empty object. The error
// is [ErrNotObject] for another kind of value; any other error means that raw
// is not JSON, and its text quotes nothing of raw. Names that are given twice are not an error here: see
// [Object.Duplicate].
func ParseObject(raw json.RawMessage) (Object, error) {
	if isAbsent(raw) {
		return Object{}, nil
	}
	return parseObject(raw, place{})
}

func parseObject(raw json.RawMessage, at place) (Object, error) {
	o := Object{at: at, raw: raw, members: make([]member, 0, 4)}
	err := members(raw, func(m member) { o.members = append(o.members, m) })
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// Get returns the value of the member name as it was sent. If name is given twice
// the last counts.
func (o Object) Get(name string) (value json.RawMessage, present bool) {
	for i := len(o.members) - 1; i >= 0; i-- {
		if m := o.members[i]; m.name.is(name) {
			return o.raw[m.value:m.end:m.end], true
		}
	}
	return nil, false
}

// Field returns the member name, present or not.
func (o Object) Field(name string) Field {
	value, _ := o.Get(name)
	return Field{at: o.at.member(name), raw: value}
}

// All yields the members in order, as often as they were sent.
func (o Object) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, m := range o.members {
			if !yield(string(m.name.text()), o.raw[m.value:m.end:m.end]) {
				return
			}
		}
	}
}

// Len is the number of members.
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

// nameSet is a set of names. Most objects are small: it looks through the first few
// one by one.
type nameSet struct {
	few  [16][]byte
	n    int
	many map[string]struct{}
}

// add adds name and reports whether it was new. It keeps name.
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
