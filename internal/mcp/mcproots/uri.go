package mcproots

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxURI is the longest URI that is accepted, in bytes: the longest possible path with every byte
// encoded.
const maxURI = 3*32767 + len("file://localhost/")

// reason says why a URI is not a valid root.
type reason string

const (
	notFile          reason = `it does not begin with "file://"`
	hasHost          reason = "it names another host"
	hasUserInfo      reason = "it names a user"
	hasQuery         reason = `it has a query: a "?" in a name is written %3F`
	hasFragment      reason = `it has a fragment: a "#" in a name is written %23`
	badEscape        reason = `it has a "%" without two hexadecimal digits: a "%" in a name is written %25`
	encodedSeparator reason = "it has an encoded separator"
	hasBackslash     reason = `it has a "\": in a name that is written %5C`
	encodedNUL       reason = "it has an encoded NUL character"
	hasControl       reason = "it has a control character: in a name that is percent-encoded"
	notUTF8          reason = "it is not UTF-8"
	noPath           reason = "it has no absolute path"
	dotSegment       reason = `it has a "." or ".." segment`
	emptySegment     reason = "it has an empty segment"
	hasDrive         reason = "it names a drive, which this system does not have"
	noDrive          reason = "it names no drive"
	tooLong          reason = "it is longer than any path"
)

// URIError is returned for a URI that is not accepted as a directory.
type URIError struct {
	URI string
	// Reason says why, such as "it names another host".
	Reason string
}

func (e *URIError) Error() string {
	return fmt.Sprintf("%q is not the URI of a directory: %s", text.Truncate(e.URI, 200), e.Reason)
}

// parseURI returns the directory that a file URI names. It does not access the file system. The
// error is a *[URIError].
//
// It rejects two kinds of URIs that [workspace.Dir.URI] returns: for a directory on a Windows
// share, because the URI names a host, and on other systems for a path that seems to begin with a
// drive.
func parseURI(uri string) (workspace.Dir, error) {
	path, why := pathOf(uri, runtime.GOOS == "windows")
	if why != "" {
		return workspace.Dir{}, &URIError{URI: uri, Reason: string(why)}
	}
	dir, err := workspace.ParseDir(path)
	if err != nil {
		return workspace.Dir{}, &URIError{URI: uri, Reason: string(noPath)}
	}
	return dir, nil
}

// pathOf returns the path in a URI, or why it is rejected. The syntax of paths is that of Windows or
// POSIX: both are compiled everywhere, so that both are tested.
func pathOf(uri string, windows bool) (string, reason) {
	const scheme = "file:/"
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch { // first what some readers would not treat as part of the path
	case len(uri) > maxURI:
		return "", tooLong
	case !utf8.ValidString(uri):
		return "", notUTF8
	case strings.ContainsFunc(uri, control):
		return "", hasControl
	case strings.Contains(uri, "?"):
		return "", hasQuery
	case strings.Contains(uri, "#"):
		return "", hasFragment
	case strings.Contains(uri, `\`):
		return "", hasBackslash
	case len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme):
		return "", notFile
	}
	rest := uri[len(scheme)-1:]
	rest = strings.TrimPrefix(rest, "//") // without it, it is the shortest form of RFC 8089
	host, encoded, found := strings.Cut(rest, "/")
	switch {
	case strings.Contains(host, "@"):
		return "", hasUserInfo
	case host != "" && !strings.EqualFold(host, "localhost"):
		return "", hasHost
	case !found:
		return "", noPath
	}
	names, why := decodePath(encoded, windows)
	if why != "" {
		return "", why
	}
	return join(names, windows)
}

// decodePath decodes the segments of a path after its first slash. They have no separators and NUL
// characters but encoded ones. One slash at the end is allowed.
func decodePath(encoded string, windows bool) (names []string, why reason) {
	encoded = strings.TrimSuffix(encoded, "/")
	if encoded == "" {
		return nil, ""
	}
	for part := range strings.SplitSeq(encoded, "/") {
		name, err := url.PathUnescape(part)
		switch {
		case err != nil:
			return nil, badEscape
		case strings.Contains(name, "\x00"):
			return nil, encodedNUL
		case strings.Contains(name, "/"), windows && strings.Contains(name, `\`):
			return nil, encodedSeparator
		case name == "":
			return nil, emptySegment
		case name == "." || name == "..":
			return nil, dotSegment
		case !utf8.ValidString(name):
			return nil, notUTF8
		}
		names = append(names, name)
	}
	return names, ""
}

// join returns the absolute path with these names.
func join(names []string, windows bool) (string, reason) {
	drive := len(names) > 0 && isDrive(names[0])
	switch {
	case !windows && drive:
		return "", hasDrive
	case !windows:
		return "/" + strings.Join(names, "/"), ""
	case !drive || names[0][1] != ':':
		return "", noDrive
	case len(names) == 1:
		return names[0] + `\`, ""
	default:
		return strings.Join(names, `\`), ""
	}
}

// isDrive reports whether a name can be read as a drive. "C|" is an old spelling of "C:".
func isDrive(name string) bool {
	return len(name) == 2 && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z' &&
		(name[1] == ':' || name[1] == '|')
}
