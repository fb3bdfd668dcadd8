package mcproots

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/workspace"
)

// maxURI is the most bytes of a URI that are read: the longest path there is, with every byte encoded.
const maxURI = 3*32767 + len("file://localhost/")

// Reason says why a URI is no root.
type Reason string

// The reasons.
const (
	NotFile     Reason = `it does not begin with "file://"`
	Host        Reason = "it names another host"
	UserInfo    Reason = "it names a user"
	Query       Reason = `it has a query: a "?" in a name is written %3F`
	Fragment    Reason = `it has a fragment: a "#" in a name is written %23`
	Escape      Reason = `it has a "%" without two hexadecimal digits: a "%" in a name is written %25`
	Separator   Reason = "it has an encoded separator"
	Backslash   Reason = `it has a "\": in a name that is written %5C`
	NUL         Reason = "it has an encoded NUL character"
	Control     Reason = "it has a control character: in a name that is percent-encoded"
	Encoding    Reason = "it is not UTF-8"
	NoPath      Reason = "it has no absolute path"
	DotSegment  Reason = `it has a "." or ".." segment`
	EmptyName   Reason = "it has an empty segment"
	DriveLetter Reason = "it names a drive, which this system does not have"
	NoDrive     Reason = "it names no drive"
	TooLong     Reason = "it is longer than any path"
)

// URIError: a URI that is not taken for a directory (M11).
type URIError struct {
	URI    string
	Reason Reason
}

func (e *URIError) Error() string {
	const most = 200
	shown := e.URI
	if len(shown) > most {
		shown = strings.ToValidUTF8(shown[:most], "") + "…"
	}
	return fmt.Sprintf("%q is not the URI of a directory: %s", shown, e.Reason)
}

// ParseURI is the directory that a file URI names. It asks nothing of the file system. The error is a [*URIError].
func ParseURI(uri string) (workspace.Dir, error) {
	path, reason := pathOf(uri, native)
	if reason != "" {
		return workspace.Dir{}, &URIError{URI: uri, Reason: reason}
	}
	dir, err := workspace.ParseDir(path)
	if err != nil {
		return workspace.Dir{}, &URIError{URI: uri, Reason: NoPath}
	}
	return dir, nil
}

// platform is how a system spells paths. Both are compiled everywhere, so that both are tested.
type platform int

const (
	posix platform = iota
	windows
)

// pathOf is the path in a URI, or why there is none.
func pathOf(uri string, on platform) (string, Reason) {
	if len(uri) > maxURI {
		return "", TooLong
	}
	if reason := misread(uri); reason != "" {
		return "", reason
	}
	const scheme = "file://"
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return "", NotFile
	}
	host, encoded, found := strings.Cut(uri[len(scheme):], "/")
	switch {
	case strings.Contains(host, "@"):
		return "", UserInfo
	case host != "" && !strings.EqualFold(host, "localhost"):
		return "", Host
	case !found:
		return "", NoPath
	}
	names, reason := namesOf(encoded, on)
	if reason != "" {
		return "", reason
	}
	return join(names, on)
}

// misread finds what some reader would not take for a part of the path.
func misread(uri string) Reason {
	if !utf8.ValidString(uri) {
		return Encoding
	}
	for i := range len(uri) {
		switch c := uri[i]; {
		case c < ' ' || c == 0x7f:
			return Control
		case c == '?':
			return Query
		case c == '#':
			return Fragment
		case c == '\\':
			return Backslash
		}
	}
	return ""
}

// namesOf are the names in a path that begins after its first slash. One slash at the end is allowed.
func namesOf(encoded string, on platform) ([]string, Reason) {
	encoded = strings.TrimSuffix(encoded, "/")
	if encoded == "" {
		return nil, ""
	}
	parts := strings.Split(encoded, "/")
	for i, part := range parts {
		name, reason := unescape(part, on)
		switch {
		case reason != "":
			return nil, reason
		case name == "":
			return nil, EmptyName
		case name == "." || name == "..":
			return nil, DotSegment
		case !utf8.ValidString(name):
			return nil, Encoding
		}
		parts[i] = name
	}
	return parts, ""
}

// unescape decodes one segment.
func unescape(part string, on platform) (string, Reason) {
	if !strings.Contains(part, "%") {
		return part, ""
	}
	out := make([]byte, 0, len(part))
	for i := 0; i < len(part); i++ {
		if part[i] != '%' {
			out = append(out, part[i])
			continue
		}
		if i+2 >= len(part) {
			return "", Escape
		}
		high, low := digit(part[i+1]), digit(part[i+2])
		if high < 0 || low < 0 {
			return "", Escape
		}
		switch c := byte(high<<4 | low); {
		case c == 0:
			return "", NUL
		case c == '/', c == '\\' && on == windows:
			return "", Separator
		default:
			out = append(out, c)
		}
		i += 2
	}
	return string(out), ""
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	default:
		return -1
	}
}

// join is an absolute path of these names.
func join(names []string, on platform) (string, Reason) {
	drive := len(names) > 0 && isDrive(names[0])
	switch {
	case on == posix && drive:
		return "", DriveLetter
	case on == posix:
		return "/" + strings.Join(names, "/"), ""
	case !drive || names[0][1] != ':':
		return "", NoDrive
	case len(names) == 1:
		return names[0] + `\`, ""
	default:
		return strings.Join(names, `\`), ""
	}
}

// isDrive reports whether a name can be read as a drive; "C|" was written once for "C:".
func isDrive(name string) bool {
	return len(name) == 2 && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z' && (name[1] == ':' || name[1] == '|')
}
