package workspace

import (
	"net/url"
	"strings"
)

// rules is how a platform spells paths. Both kinds are compiled everywhere, so that
// both are tested everywhere; native is the running platform's.
type rules interface {
	// absolute reports whether path says where it is without a working directory.
	absolute(path string) bool
	// normalise drops "." components and repeated and trailing separators of an
	// absolute path (A8).
	normalise(path string) string
	// uri is an absolute, normalised path as a file URI.
	uri(path string) string
}

func hasNUL(path string) bool { return strings.IndexByte(path, 0) >= 0 }

// posix: one tree, one separator.
type posix struct{}

func (posix) absolute(path string) bool { return strings.HasPrefix(path, "/") }

func (posix) normalise(path string) string {
	if clean := tidy(path, isSlash); clean != "" {
		return "/" + clean
	}
	return "/"
}

func (posix) uri(path string) string { return fileURI("", path) }

func isSlash(c byte) bool { return c == '/' }

// tidy joins the components of path that are not ".", each with the separator that
// was in front of it.
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

func fileURI(host, path string) string {
	u := url.URL{Scheme: "file", Host: host, Path: path}
	return u.String()
}
