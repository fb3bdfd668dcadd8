package tools

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxGlob is the longest glob, in bytes.
	maxGlob = 1024
	// maxBraces and maxDeep are the most braces and "**" of a glob: each multiplies the time to
	// match.
	maxBraces = 8
	maxDeep   = 8
	// maxChoices is the most combinations of alternatives in braces, all of which are tried.
	maxChoices = 256
)

// glob is a pattern for paths: "*" and "?" match within a name, "**" across directories, "[a-z]"
// one character of a set, and "{a,b}" one of several alternatives. A glob without a slash is
// matched against the last name of a path, any other against the whole path. So "./*.md" matches at
// the top only, and "a/**" everything in a. It is immutable and safe for concurrent use.
type glob struct {
	text string
	// byName reports whether only the last name of a path is matched.
	byName bool
}

// newGlob compiles a glob.
func newGlob(given string) (*glob, error) {
	switch {
	case given == "":
		return nil, invalid("glob", given, "it is empty")
	case len(given) > maxGlob:
		return nil, invalid("glob", given, "it has more than %d bytes", maxGlob)
	case !doublestar.ValidatePattern(given):
		return nil, invalid("glob", given,
			"a bracket or brace is not closed, or nothing follows a backslash")
	case strings.Count(given, "{") > maxBraces:
		return nil, invalid("glob", given, "it has more than %d braces", maxBraces)
	case text.GlobChoices(given, maxChoices) > maxChoices:
		return nil, invalid("glob", given, "its braces make more than %d combinations", maxChoices)
	case strings.Count(given, "**") > maxDeep:
		return nil, invalid("glob", given, "it has more than %d \"**\"", maxDeep)
	case given[0] == '/':
		return nil, invalid("glob", given,
			"it begins with a slash, but is matched against paths in the searched directory")
	case strings.HasSuffix(given, "/"):
		return nil, invalid("glob", given,
			"it ends with a slash, but only files are found: add ** for those in a directory")
	}
	rest, atTop := strings.CutPrefix(given, "./")
	return &glob{text: inside(rest), byName: !atTop && !strings.Contains(rest, "/")}, nil
}

// inside lets a final "/**", also of an alternative, match what is in a directory, but not the
// directory itself, or a file of its name.
func inside(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		b.WriteByte(glob[i])
		end := i + len("/**")
		if strings.HasPrefix(glob[i:], "/**") &&
			(end == len(glob) || glob[end] == ',' || glob[end] == '}') {
			b.WriteString("**/*")
			i = end - 1
		}
	}
	return b.String()
}

// match reports whether g matches the path of name in dir, a slash-separated directory, "" for the
// top.
func (g *glob) match(dir, name string) bool {
	if !g.byName && dir != "" {
		name = dir + "/" + name
	}
	return doublestar.MatchUnvalidated(g.text, name)
}
