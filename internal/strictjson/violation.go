package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Reason is a machine-readable rule name. The set is closed: a client may switch on it.
type Reason string

// The reasons of clause A5.
const (
	Null          Reason = "null"          // null where a value is needed
	Type          Reason = "type"          // a value of the wrong JSON type
	Required      Reason = "required"      // a member that must be there is absent
	Empty         Reason = "empty"         // an empty string
	Relative      Reason = "relative"      // a path that is not absolute on this platform
	NUL           Reason = "nul"           // a path with a NUL character
	Encoding      Reason = "encoding"      // text that is not Unicode, such as a lone surrogate
	DuplicateKey  Reason = "duplicate_key" // an object that names a member twice
	WrongCase     Reason = "wrong_case"    // a key that equals a known key but for its case
	CwdMismatch   Reason = "cwd_mismatch"  // not the working directory that the session was made with
	TooMany       Reason = "too_many"      // more roots than the limit
	Denied        Reason = "denied"        // refused by the user's policy
	Missing       Reason = "missing"       // a directory that does not exist
	NotDirectory  Reason = "not_directory" // a path that exists and is not a directory
	Unreadable    Reason = "unreadable"    // a directory that cannot be opened
	Unsupported   Reason = "unsupported"   // a variant that was not advertised
	InvalidCursor Reason = "cursor"        // a list cursor that is malformed or of another filter
	OtherAgent    Reason = "other_agent"   // a session that another agent answers
)

// Violation is one thing wrong with a request.
type Violation struct {
	// Field is the member, as a path from params: "cwd", "additionalDirectories",
	// "mcpServers[0].env".
	Field string `json:"field"`
	// Index is the position in Field's array, nil when Field is not an array or
	// the whole of it is wrong.
	Index *int `json:"index,omitempty"`
	// Value is what was sent, absent where nothing was or where it may be secret.
	// Long values are cut by [New].
	Value json.RawMessage `json:"value,omitempty"`
	// Reason is the rule that was broken.
	Reason Reason `json:"reason"`
	// Expected is what would have been right, where that is one thing: the stored
	// working directory, the limit, the key's right spelling.
	Expected string `json:"expected,omitempty"`
}

// maxValue bounds the bytes of an echoed value.
const maxValue = 1024

// NewViolation returns a violation of field. value is the offending value: a string or
// other JSON-encodable value, raw JSON, or nil for none. An echo longer than
// 1 KiB is cut.
func NewViolation(field string, value any, reason Reason) Violation {
	v := Violation{Field: field, Reason: reason}
	switch x := value.(type) {
	case nil:
	case json.RawMessage:
		v.Value = boundedValue(x)
	case string:
		v.Value = encode(x)
	default:
		v.Value = encode(x)
	}
	return v
}

func encode(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return boundedValue(raw)
}

func boundedValue(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxValue {
		return append(json.RawMessage(nil), raw...)
	}
	cut, _ := json.Marshal(strings.ToValidUTF8(string(raw[:maxValue]), "") + "…")
	return cut
}

// At returns v for entry index of its field's array.
func (v Violation) At(index int) Violation {
	v.Index = &index
	return v
}

// Expecting returns v with what would have been right.
func (v Violation) Expecting(expected string) Violation {
	v.Expected = expected
	return v
}

// String says v in words that a person can act on.
func (v Violation) String() string {
	where := v.Field
	if v.Index != nil {
		where = fmt.Sprintf("%s[%d]", v.Field, *v.Index)
	}
	if len(v.Value) > 0 && v.Reason != Null {
		where += " " + string(v.Value)
	}
	return where + " " + v.words()
}

func (v Violation) words() string {
	switch v.Reason {
	case Null:
		return "is null: leave it out, or give a value"
	case Type:
		return expecting("has the wrong type", "want ", v.Expected)
	case Required:
		return "is missing: the request needs it"
	case Empty:
		return "is empty: give an absolute path"
	case Relative:
		return "is not absolute: give an absolute path"
	case NUL:
		return "contains a NUL character: no path can"
	case Encoding:
		return "is not valid Unicode text"
	case DuplicateKey:
		return "is given twice in one object: give it once"
	case WrongCase:
		return expecting("is spelled in the wrong case", "write ", v.Expected)
	case CwdMismatch:
		return expecting("is not the session's working directory", "use ", v.Expected)
	case TooMany:
		return expecting("has too many roots", "the limit is ", v.Expected)
	case Denied:
		return expecting("is refused by policy", "see ", v.Expected)
	case Missing:
		return "does not exist: create the directory, or give another"
	case NotDirectory:
		return "is not a directory: give a directory"
	case Unreadable:
		return expecting("cannot be opened", "", v.Expected)
	case Unsupported:
		return expecting("is not supported", "", v.Expected)
	case InvalidCursor:
		return "is not a cursor of this list: start again without one"
	case OtherAgent:
		return expecting("belongs to another agent", "run ", v.Expected)
	default:
		return string(v.Reason)
	}
}

func expecting(words, lead, expected string) string {
	if expected == "" {
		return words
	}
	return words + ": " + lead + expected
}

// MaxViolations is the most violations that an Error holds: a list of a million nulls need not be answered with a million
// violations.
const MaxViolations = 100

// Error is a refusal: the violations that one stage of checking found, at least one and the first
// [MaxViolations] of them, in the order of the request.
type Error struct {
	Violations []Violation
}

// Refuse returns nil if there are no violations, else an [*Error] of them.
func Refuse(violations ...Violation) error {
	if len(violations) == 0 {
		return nil
	}
	return &Error{Violations: violations[:min(len(violations), MaxViolations)]}
}

// Error names the first violation in words, and how many more there are. A refusal of [MaxViolations] violations may
// have left some out.
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

// ViolationsOf returns the violations in err's tree, nil if there are none.
func ViolationsOf(err error) []Violation {
	var e *Error
	if errors.As(err, &e) {
		return e.Violations
	}
	return nil
}
