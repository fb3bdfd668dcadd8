package workspace

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// The members of a request that name roots, as violations call them.
const (
	fieldCwd        = "cwd"
	fieldAdditional = "additionalDirectories"
)

// Dir is an absolute directory path in the spelling of its sender, normalised by
// clause A8: no "." components, no repeated or trailing separators; ".." and
// links are left alone. Dirs compare with ==. The zero Dir is no directory.
type Dir struct{ path string }

// ParseDir checks path by the rules of clause A4 and normalises it. It asks
// nothing of the file system. The error is a [*violation.Error] with the field "cwd".
func ParseDir(path string) (Dir, error) {
	if broken := check(native{}, path); len(broken) > 0 {
		return Dir{}, strictjson.Refuse(each(broken, fieldCwd, path)...)
	}
	return Dir{native{}.normalise(path)}, nil
}

// String is the path, "" for the zero Dir.
func (d Dir) String() string { return d.path }

// IsZero reports whether d is no directory.
func (d Dir) IsZero() bool { return d.path == "" }

// URI is the directory as a file URI (RFC 8089), percent-encoded so that a reader gets
// the path back byte by byte (clause M11). A drive becomes file:///C:/dir, and a
// directory on a server file://server/share/dir. A ".." is kept, and
// most readers of URIs collapse it: give them real paths. It is "" for the zero Dir.
func (d Dir) URI() string {
	if d.IsZero() {
		return ""
	}
	return native{}.uri(d.path)
}

// MarshalJSON encodes the path as a string.
func (d Dir) MarshalJSON() ([]byte, error) { return json.Marshal(d.path) }

// check lists the rules of clause A4 that path breaks.
func check(r rules, path string) []strictjson.Reason {
	if path == "" {
		return []strictjson.Reason{strictjson.Empty}
	}
	var broken []strictjson.Reason
	if !utf8.ValidString(path) {
		broken = append(broken, strictjson.Encoding)
	}
	if hasNUL(path) {
		broken = append(broken, strictjson.NUL)
	}
	if !r.absolute(path) {
		broken = append(broken, strictjson.Relative)
	}
	return broken
}

func each(broken []strictjson.Reason, field, path string) []strictjson.Violation {
	out := make([]strictjson.Violation, len(broken))
	for i, reason := range broken {
		out[i] = strictjson.NewViolation(field, path, reason)
	}
	return out
}
