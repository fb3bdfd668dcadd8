package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Reason identifies the rule that a violation breaks. The set is closed, so that clients can switch
// on it.
type Reason string

// All reasons.
const (
	Null     Reason = "null"     // null where a value is required
	Type     Reason = "type"     // a value of the wrong JSON type
	Required Reason = "required" // a required member is absent
	Empty    Reason = "empty"    // an empty string
	Relative Reason = "relative" // a path that is not absolute on this platform
	NUL      Reason = "nul"      // a path that contains a NUL character
	// text that is not valid Unicode, such as a lone surrogate
	Encoding     Reason = "encoding"
	DuplicateKey Reason = "duplicate_key" // an object with two members of the same name
	WrongCase    Reason = "wrong_case"    // a key that differs from a known key only in case
	CwdMismatch  Reason = "cwd_mismatch"  // not the working directory the session was created with
	TooMany      Reason = "too_many"      // more roots than the limit
	TooLong      Reason = "too_long"      // an array with more entries than MaxItems
	Denied       Reason = "denied"        // forbidden by the user's policy
	Missing      Reason = "missing"       // a directory that does not exist
	NotDirectory Reason = "not_directory" // a path that exists but is not a directory
	Unreadable   Reason = "unreadable"    // a directory that cannot be opened
	Unsupported  Reason = "unsupported"   // a variant that was not advertised
	// a list cursor that is malformed or belongs to another filter
	InvalidCursor Reason = "cursor"
	OtherAgent    Reason = "other_agent" // a session that belongs to another agent
)

// Violation is one mistake in a request.
type Violation struct {
	// Field is the member, as a path from params: "cwd", "additionalDirectories",
	// "mcpServers[0].env". For a folder that the user declared it is the setting.
	Field string `json:"field"`
	// Index is the position in Field's array. It is nil if Field is not an array or the whole array
	// is wrong.
	Index *int `json:"index,omitempty"`
	// Value is the value that was sent, truncated to about 1 KiB. It is absent if nothing was sent
	// or the value may be secret.
	Value json.RawMessage `json:"value,omitempty"`
	// Reason is the rule that was broken.
	Reason Reason `json:"reason"`
	// Expected is the right value, if there is just one: the stored working directory, the limit,
	// the right spelling.
	Expected string `json:"expected,omitempty"`
	// Hint tells a person what else they can do, such as run a command, or is "".
	Hint string `json:"hint,omitempty"`
}

// maxValue bounds the length of a value in a violation, in bytes.
const maxValue = 1024

// NewViolation returns a violation of field. value is the wrong value: raw JSON, any value that can
// be encoded as JSON, or nil to omit it.
func NewViolation(field string, value any, reason Reason) Violation {
	v := Violation{Field: field, Reason: reason}
	switch x := value.(type) {
	case nil:
	case json.RawMessage:
		v.Value = boundedValue(x)
	default:
		v.Value = boundedValue(Encode(x))
	}
	return v
}

func boundedValue(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxValue {
		return append(json.RawMessage(nil), raw...)
	}
	return Encode(strings.ToValidUTF8(string(raw[:maxValue]), "") + "…")
}

// At returns v for entry index of its field's array.
func (v Violation) At(index int) Violation {
	v.Index = &index
	return v
}

// Expecting returns v with the right value.
func (v Violation) Expecting(expected string) Violation {
	v.Expected = expected
	return v
}

// Hinting returns v with a hint.
func (v Violation) Hinting(hint string) Violation {
	v.Hint = hint
	return v
}

// String describes v and says what to do.
func (v Violation) String() string {
	where := v.Field
	if v.Index != nil {
		where = fmt.Sprintf("%s[%d]", v.Field, *v.Index)
	}
	if len(v.Value) > 0 && v.Reason != Null {
		where += " " + string(v.Value)
	}
	where += " " + v.words()
	if v.Hint != "" {
		where += "; " + v.Hint
	}
	return where
}

// phrase says what a violation is, and what to do, given the right value or without one. In given,
// %s stands for that value.
type phrase struct{ is, given, otherwise string }

// phrases has the words for each reason.
var phrases = map[Reason]phrase{
	Null:          {"is null", "give %s", "omit it or give a value"},
	Type:          {"has the wrong type", "want %s", ""},
	Required:      {"is missing", "give %s", "it is required"},
	Empty:         {"is empty", "give %s", "give an absolute path"},
	Relative:      {"is not absolute", "", "give an absolute path"},
	NUL:           {is: "contains a NUL character, which is not allowed in paths"},
	Encoding:      {is: "is not valid Unicode text"},
	DuplicateKey:  {"is given twice in one object", "", "give it once"},
	WrongCase:     {"is spelled in the wrong case", "write %s", ""},
	CwdMismatch:   {"is not the session's working directory", "use %s", ""},
	TooMany:       {"has too many folders", "the limit is %s", ""},
	TooLong:       {"is too long", "the limit is %s", ""},
	Missing:       {"does not exist", "%s", "create the folder or give another one"},
	NotDirectory:  {"is not a folder", "", "give a folder"},
	Unreadable:    {"cannot be opened", "%s", ""},
	Unsupported:   {"is not supported", "%s", ""},
	InvalidCursor: {"is not a cursor of this list", "", "start again without a cursor"},
	OtherAgent:    {"belongs to another agent", "run %s", ""},
	Denied:        {"is refused by policy", "%s", "it is in none of the folders that you may open"},
}

func (v Violation) words() string {
	p, known := phrases[v.Reason]
	if !known {
		return string(v.Reason)
	}
	advice := p.otherwise
	if v.Expected != "" && p.given != "" {
		advice = strings.Replace(p.given, "%s", v.Expected, 1)
	}
	if advice == "" {
		return p.is
	}
	return p.is + ": " + advice
}

// MaxViolations is the most violations in an Error, so that a list of a million nulls does not
// result in a million violations.
const MaxViolations = 100

// Error is the error for an invalid request. It has between 1 and [MaxViolations] violations, in
// the order of the request.
type Error struct {
	Violations []Violation
}

// Refuse returns an [*Error] with the violations, or nil.
func Refuse(violations ...Violation) error {
	if len(violations) == 0 {
		return nil
	}
	return &Error{Violations: violations[:min(len(violations), MaxViolations)]}
}

// Error describes the first violation and counts the others. With [MaxViolations] violations some
// may have been omitted.
func (e *Error) Error() string {
	if len(e.Violations) == 0 {
		return "invalid request"
	}
	first := e.Violations[0].String()
	switch more := len(e.Violations) - 1; {
	case more >= MaxViolations-1:
		return fmt.Sprintf("%s (and at least %d more)", first, more)
	case more > 0:
		return fmt.Sprintf("%s (and %d more)", first, more)
	default:
		return first
	}
}

// ViolationsOf returns the violations of the [*Error] in err's tree, or nil.
func ViolationsOf(err error) []Violation {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Violations
	}
	return nil
}

// Violations collects the violations of a request, so that a decoder can read all fields before it
// fails. Its methods return the zero value for a field that cannot be read. The zero Violations is
// empty.
//
//	var v strictjson.Violations
//	p.cwd = v.Text(object.Field("cwd"))
//	for _, item := range v.Items(object.Field("entries")) {
//		…
//	}
//	return p, v.Err()
type Violations struct{ found []Violation }

// Add adds violations, up to [MaxViolations].
func (v *Violations) Add(found ...Violation) {
	room := MaxViolations - len(v.found)
	v.found = append(v.found, found[:min(len(found), room)]...)
}

// Err returns an [*Error] with the violations, or nil.
func (v *Violations) Err() error { return Refuse(v.found...) }

// Text reads a string with [Field.Text].
func (v *Violations) Text(f Field) string {
	text, found := f.Text()
	v.Add(found...)
	return text
}

// OptionalText reads a string that may be absent or null. given reports whether there is one.
func (v *Violations) OptionalText(f Field) (text string, given bool) {
	if !f.Present() || f.IsNull() {
		return "", false
	}
	text, wrong := f.Text()
	v.Add(wrong...)
	return text, wrong == nil
}

// Texts reads an array of strings. Those that are not strings are "".
func (v *Violations) Texts(f Field) (texts []string) {
	for _, item := range v.Items(f) {
		texts = append(texts, v.Text(item))
	}
	return texts
}

// Items reads an array with [Field.Items], as long as more violations are collected.
func (v *Violations) Items(f Field) iter.Seq2[int, Field] {
	items, found := f.Items()
	v.Add(found...)
	return func(yield func(int, Field) bool) {
		for i, item := range items {
			if len(v.found) >= MaxViolations || !yield(i, item) {
				return
			}
		}
	}
}

// Object reads an object with [Field.Object], and reports whether f is one.
func (v *Violations) Object(f Field) (Object, bool) {
	o, found := f.Object()
	v.Add(found...)
	return o, found == nil
}
