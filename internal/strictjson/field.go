package strictjson

import (
	"bytes"
	"encoding/json"
)

// Field is a value at its place in a request: a member of an object, which may be
// absent, or an entry of an array. It is immutable.
//
// Each reading returns what it read, or the violations that say why it could not. An absent field is
// [violation.Required], and null is [violation.Null]: a caller for whom either
// is fine asks [Field.Present] or [Field.IsNull] first.
type Field struct {
	at  place
	raw json.RawMessage
}

// Present reports whether the field was given, be it null.
func (f Field) Present() bool { return f.raw != nil }

// IsNull reports whether the field was given as null.
func (f Field) IsNull() bool { return string(f.raw) == "null" }

// Raw is the value as it was sent, nil if absent.
func (f Field) Raw() json.RawMessage { return f.raw }

// Path is where the field stands, from the outermost object: "mcpServers[0].env".
func (f Field) Path() string { return f.at.full() }

// Masked returns f such that no violation of it, or of what is in it, carries a value: it may
// hold secrets.
func (f Field) Masked() Field {
	f.at.masked = true
	return f
}

// Refuse returns a violation of the field.
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

// echo is the value in a form that every JSON reader takes. Some refuse a whole message for
// one lone surrogate: a string is given with U+FFFD in its place, and another value that may hold
// one is left out.
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

// Object reads an object, whose fields' paths begin with this field's.
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

// Items reads an array of anything.
func (f Field) Items() ([]Field, []Violation) {
	var items []Field
	bad := f.each(func(item Field) { items = append(items, item) })
	if bad != nil {
		return nil, bad
	}
	return items, nil
}

// Texts reads an array of strings. Each entry that is none is a violation with its index,
// up to 100 of them.
func (f Field) Texts() ([]string, []Violation) {
	var texts []string
	var wrong []Violation
	bad := f.each(func(item Field) {
		text, bad := item.Text()
		if len(wrong) < MaxViolations {
			wrong = append(wrong, bad...)
		}
		texts = append(texts, text)
	})
	if bad = append(bad, wrong...); bad != nil {
		return nil, bad
	}
	return texts, nil
}

// each calls yield for each entry of the array f.
func (f Field) each(yield func(Field)) []Violation {
	const wanted = "an array"
	if bad := f.want('[', wanted); bad != nil {
		return bad
	}
	array := place{path: f.at.full(), masked: f.at.masked}
	s := newScanner(f.raw)
	err := s.delim()
	for i := 0; err == nil && s.dec.PeekKind() != ']'; i++ {
		var start, end int
		if start, end, err = s.value(); err == nil {
			yield(Field{at: array.item(i), raw: f.raw[start:end:end]})
		}
	}
	if err != nil {
		return []Violation{f.Refuse(Type).Expecting(wanted)}
	}
	return nil
}

// want checks that the value begins as a kind of value does.
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
