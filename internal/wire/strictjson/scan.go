package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	// ErrNotObject is returned for well-formed JSON that is not an object.
	ErrNotObject = errors.New("not a JSON object")
	// ErrTooDeep is returned for JSON with more than 10,000 levels of objects and arrays.
	ErrTooDeep = errors.New("more than 10,000 levels of objects and arrays")
)

// scanner reads the tokens of raw and their offsets. It is released when it is no longer used.
type scanner struct {
	dec *decoder
	raw []byte
}

// decoder is a decoder with its input.
type decoder struct {
	jsontext.Decoder
	in bytes.Buffer
}

// decoders are reused, because most messages are so short that making a decoder takes longer than
// reading them.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// lenient accepts duplicate names and lone surrogates, which callers check themselves.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true)}

func newScanner(raw []byte) scanner {
	s := scanner{dec: decoders.Get().(*decoder), raw: raw}
	s.reset(raw)
	return s
}

// release keeps the decoder for another scanner, but not its input.
func (s scanner) release() {
	s.reset(nil)
	decoders.Put(s.dec)
}

func (s scanner) reset(raw []byte) {
	s.dec.in = *bytes.NewBuffer(raw)
	s.dec.Reset(&s.dec.in, lenient...)
}

// value reads the next value and returns its offsets in raw.
func (s scanner) value() (start, end int, err error) {
	v, err := s.dec.ReadValue()
	if err != nil {
		return 0, 0, malformed(err)
	}
	end = int(s.dec.InputOffset())
	return end - len(v), end, nil
}

// enter reads up to the value of a member of the object that comes next. It reports whether there
// is one.
func (s scanner) enter(wanted string) bool {
	if s.dec.PeekKind() != '{' || s.delim() != nil {
		return false
	}
	for s.dec.PeekKind() == '"' {
		start, end, err := s.value()
		if err != nil {
			return false
		}
		if name(s.raw[start:end]).is(wanted) {
			return true
		}
		if s.dec.SkipValue() != nil {
			return false
		}
	}
	return false
}

// delim reads the next token, one of {}[], which the caller has peeked.
func (s scanner) delim() error {
	_, err := s.dec.ReadToken()
	return malformed(err)
}

// end checks that there are no more values.
func (s scanner) end() error {
	switch _, err := s.dec.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("malformed JSON: more than one value")
	default:
		return malformed(err)
	}
}

// malformed describes a syntax error without quoting the input.
func malformed(err error) error {
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if syntax.Err != nil && syntax.Err.Error() == "exceeded max depth" { // it is not exported
			return ErrTooDeep
		}
		return fmt.Errorf("malformed JSON at byte %d", syntax.ByteOffset)
	}
	return errors.New("malformed JSON: unexpected end")
}

// Outline returns an object in which the objects and arrays are empty, to see the members of one
// that is [ErrTooDeep]. It does not check the syntax.
func Outline(raw json.RawMessage) json.RawMessage {
	var outline json.RawMessage
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		width := 1
		outer := depth < 2
		switch c := raw[i]; {
		case quoted && c == '\\' && i+1 < len(raw):
			width = 2
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
			outer = depth < 2
		}
		if outer {
			outline = append(outline, raw[i:i+width]...)
		}
		i += width - 1
	}
	return outline
}

// member is a member of an object or an entry of an array, with its offsets in their bytes.
type member struct {
	name  name // nil for an entry
	start int  // of the name
	value int  // start of the value
	end   int  // of the value
}

// members calls yield for each member of an object or entry of an array, whose first byte is open.
// It returns an error unless raw is one valid value of that kind, but yields what is before the
// error, and a member whose value is malformed.
func members(raw []byte, open jsontext.Kind, yield func(member)) error {
	s := newScanner(raw)
	defer s.release()
	if s.dec.PeekKind() != open {
		if _, _, err := s.value(); err != nil {
			return err
		}
		return cmp.Or(s.end(), ErrNotObject)
	}
	if err := s.delim(); err != nil {
		return err
	}
	for s.dec.PeekKind() != open+2 { // the closing bracket
		var m member
		var err error
		if open == '{' {
			if m.start, m.end, err = s.value(); err != nil {
				return err
			}
			m.name = name(raw[m.start:m.end])
		}
		m.value, m.end, err = s.value()
		if yield(m); err != nil {
			return err
		}
	}
	if err := s.delim(); err != nil {
		return err
	}
	return s.end()
}

// name is a member's name as JSON text, with its quotes.
type name []byte

func (n name) escaped() bool { return bytes.IndexByte(n, '\\') >= 0 }

// is reports whether n is plain.
func (n name) is(plain string) bool {
	if !n.escaped() {
		return string(n[1:len(n)-1]) == plain
	}
	const longest = len(`\u0000`) // of an escaped byte
	return len(n) <= longest*len(plain)+2 && string(n.text()) == plain
}

// text returns n unquoted, sharing memory with n if possible.
func (n name) text() []byte {
	if !n.escaped() {
		return n[1 : len(n)-1]
	}
	text, _ := unquote(json.RawMessage(n))
	return text
}

// AppendText appends text as a JSON string. Invalid UTF-8 in text becomes U+FFFD.
func AppendText(to []byte, text string) []byte {
	to, _ = jsontext.AppendQuote(to, text)
	return to
}

// Text returns text as a JSON string.
func Text(text string) json.RawMessage { return AppendText(nil, text) }

// unquote returns the text of a JSON string. For a lone surrogate it returns an error, and the text
// has U+FFFD instead.
func unquote(quoted json.RawMessage) ([]byte, error) {
	return jsontext.AppendUnquote(nil, quoted)
}
