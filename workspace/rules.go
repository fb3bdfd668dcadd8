package workspace

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// rules are a platform's rules for paths. The rules of all platforms are compiled, and so can be
// tested, everywhere; native has those of the running platform.
type rules interface {
	// absolute reports whether path does not depend on a working directory.
	absolute(path string) bool
	// normalise removes "." components and repeated and trailing separators from an absolute path.
	normalise(path string) string
	// uri returns an absolute, normalised path as a file URI.
	uri(path string) string
	// split splits a path. top is where its tree starts, "" for a relative path; names has no "."
	// and no empty names; dir reports whether the path can only mean a directory, as with a
	// trailing separator. A path that depends on the state of the process, such as the current
	// directory of a drive, has the top "?", which equals no other.
	split(path string) (top string, names []string, dir bool)
	// join is the reverse of split.
	join(top string, names []string) string
	// same reports whether two names, or two tops, are equal.
	same(a, b string) bool
}

func hasNUL(path string) bool { return strings.IndexByte(path, 0) >= 0 }

// posix has one tree and one separator.
type posix struct{}

func (posix) absolute(path string) bool { return strings.HasPrefix(path, "/") }

func (posix) normalise(path string) string {
	if clean := tidy(path, isSlash); clean != "" {
		return "/" + clean
	}
	return "/"
}

func (posix) uri(path string) string { return fileURI("", path) }

func (posix) split(path string) (top string, names []string, dir bool) {
	if strings.HasPrefix(path, "/") {
		top = "/"
	}
	names, dir = components(path, isSlash)
	return top, names, dir
}

func (posix) join(top string, names []string) string { return top + strings.Join(names, "/") }

func (posix) same(a, b string) bool { return a == b }

func isSlash(c byte) bool { return c == '/' }

// tidy joins the components of path that are not ".", each with the separator in front of it.
func tidy(path string, separator func(byte) bool) string {
	var out strings.Builder
	out.Grow(len(path))
	before := byte(0)
	for i := 0; i < len(path); {
		if separator(path[i]) {
			if i == 0 || !separator(path[i-1]) {
				before = path[i]
			}
			i++
			continue
		}
		end := i
		for end < len(path) && !separator(path[end]) {
			end++
		}
		if path[i:end] != "." {
			if out.Len() > 0 {
				out.WriteByte(before)
			}
			out.WriteString(path[i:end])
		}
		i = end
	}
	return out.String()
}

// components returns the names of path; dir reports whether it ends in a separator or ".".
func components(path string, separator func(byte) bool) (names []string, dir bool) {
	names = make([]string, 0, 16)
	split := func(r rune) bool { return r < utf8.RuneSelf && separator(byte(r)) }
	for name := range strings.FieldsFuncSeq(path, split) {
		if dir = name == "."; !dir {
			names = append(names, name)
		}
	}
	return names, dir || path != "" && separator(path[len(path)-1])
}

func fileURI(host, path string) string {
	u := url.URL{Scheme: "file", Host: host, Path: path}
	return u.String()
}

// drives are the rules of Windows: drives (C:\dir), shares (\\server\share\dir), and both after
// \\?\; two separators, kept as they were written.
type drives struct{}

func (w drives) absolute(path string) bool {
	volume := w.volume(path)
	switch rest := path[len(volume):]; {
	case volume == "":
		return false
	case endsInDrive(volume):
		return rest != "" && isEither(rest[0])
	default:
		return rest == "" || isEither(rest[0])
	}
}

func (w drives) normalise(path string) string {
	volume := w.volume(path)
	rest := path[len(volume):]
	clean := tidy(rest, isEither)
	switch {
	case clean != "":
		return volume + rest[:1] + clean
	case endsInDrive(volume):
		return volume + rest[:1] // without it, "C:" is relative and \\?\C: the device
	default:
		return volume
	}
}

func (w drives) uri(path string) string {
	slashed := strings.ReplaceAll(plain(path), `\`, "/")
	if share, ok := strings.CutPrefix(slashed, "//"); ok {
		host, rest, _ := strings.Cut(share, "/")
		return fileURI(host, "/"+rest)
	}
	return fileURI("", "/"+slashed)
}

func (w drives) split(path string) (top string, names []string, dir bool) {
	volume := w.volume(path)
	rest := path[len(volume):]
	names, dir = components(rest, isEither)
	switch {
	case volume != "" && w.absolute(path):
		top = plain(strings.ReplaceAll(volume, "/", `\`)) + `\`
	case volume != "", rest != "" && isEither(rest[0]):
		top = "?"
	}
	return top, names, dir
}

func (drives) join(top string, names []string) string { return top + strings.Join(names, `\`) }

func (drives) same(a, b string) bool { return strings.EqualFold(a, b) && a != "?" }

// plain returns path without the prefix \\?\, which lifts the limit on the length of a path.
func plain(path string) string {
	if share, ok := strings.CutPrefix(path, `\\?\UNC\`); ok {
		return `\\` + share
	}
	return strings.TrimPrefix(path, `\\?\`)
}

// volume returns the part of path before its directories: a drive, a share, or "".
func (drives) volume(path string) string {
	switch {
	case len(path) >= 2 && isDrive(path[:2]):
		return path[:2]
	case strings.HasPrefix(path, `\\?\UNC\`):
		return share(path, len(`\\?\UNC\`))
	case len(path) >= 2 && isEither(path[0]) && isEither(path[1]):
		return share(path, 2)
	default:
		return ""
	}
}

// share returns path up to the end of the "server\share" that starts at from, or "".
func share(path string, from int) string {
	server := component(path[from:])
	if server == 0 || from+server == len(path) {
		return ""
	}
	name := component(path[from+server+1:])
	if name == 0 {
		return ""
	}
	return path[:from+server+1+name]
}

// component returns the length of path's first component.
func component(path string) int {
	for i := range len(path) {
		if isEither(path[i]) {
			return i
		}
	}
	return len(path)
}

// endsInDrive reports whether volume is a drive, plain or after \\?\.
func endsInDrive(volume string) bool {
	return isDrive(strings.TrimPrefix(volume, `\\?\`))
}

func isDrive(volume string) bool {
	if len(volume) != 2 || volume[1] != ':' {
		return false
	}
	letter := volume[0] | 0x20
	return 'a' <= letter && letter <= 'z'
}

func isEither(c byte) bool { return c == '/' || c == '\\' }
