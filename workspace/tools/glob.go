package tools

import (
	"fmt"
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

// Glob is a pattern for paths: "*" and "?" match within a name, "**" across directories, "[a-z]"
// one character of a set, and "{a,b}" one of several alternatives. A glob without a slash is
// matched against the last name of a path, any other against the whole path. So "./*.md" matches at
// the top only, and "a/**" everything in a. It is immutable and safe for concurrent use.
type Glob struct {
	text string
	// byName reports whether only the last name of a path is matched.
	byName bool
	form   globForm
	// literal is the text that the forms suffix and exact compare with.
	literal string
}

// globForm says how a glob is matched.
type globForm int

const (
	general    globForm = iota // by doublestar
	everything                 // always
	suffix                     // names that end with the literal
	exact                      // the literal
)

// GlobError is returned for an invalid glob, and for one that would be too slow to match.
type GlobError struct {
	// Glob is the text that was given.
	Glob string
	// Why says what is wrong with it, such as "it is empty".
	Why string
}

func (e *GlobError) Error() string { return fmt.Sprintf("invalid glob %q: %s", e.Glob, e.Why) }

// NewGlob compiles a glob. The error is a [*GlobError].
func NewGlob(glob string) (*Glob, error) {
	switch {
	case glob == "":
		return nil, &GlobError{glob, "it is empty"}
	case len(glob) > maxGlob:
		return nil, &GlobError{glob[:32] + "…", fmt.Sprintf("it has more than %d bytes", maxGlob)}
	case !doublestar.ValidatePattern(glob):
		return nil, &GlobError{glob,
			"a bracket or brace is not closed, or nothing follows a backslash"}
	case strings.Count(glob, "{") > maxBraces:
		return nil, &GlobError{glob, fmt.Sprintf("it has more than %d braces", maxBraces)}
	case text.GlobChoices(glob, maxChoices) > maxChoices:
		return nil, &GlobError{glob, fmt.Sprintf("its braces make more than %d combinations",
			maxChoices)}
	case strings.Count(glob, "**") > maxDeep:
		return nil, &GlobError{glob, fmt.Sprintf("it has more than %d \"**\"", maxDeep)}
	case glob[0] == '/':
		return nil, &GlobError{glob,
			"it begins with a slash, but is matched against paths in the searched directory"}
	case strings.HasSuffix(glob, "/"):
		return nil, &GlobError{glob,
			"it ends with a slash, but only files are found: add ** for those in a directory"}
	}
	rest, atTop := strings.CutPrefix(glob, "./")
	g := &Glob{text: inside(rest)}
	if rest, ok := strings.CutPrefix(g.text, "**/"); ok && !strings.Contains(rest, "/") &&
		!strings.Contains(rest, "**") && rest != "" {
		g.text, atTop = rest, false // the same, because only the last name is matched
	}
	g.byName = !atTop && !strings.Contains(g.text, "/")
	g.simplify()
	return g, nil
}

// inside lets a final "/**", also of an alternative, match what is in a directory, but not the
// directory itself, or a file of its name.
func inside(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		b.WriteByte(glob[i])
		end := i + len("/**")
		if strings.HasPrefix(glob[i:], "/**") && (end == len(glob) || glob[end] == ',' || glob[end] == '}') {
			b.WriteString("**/*")
			i = end - 1
		}
	}
	return b.String()
}

// simplify chooses the fastest form of a glob that is matched against names.
func (g *Glob) simplify() {
	special := func(text string) bool { return strings.ContainsAny(text, `*?[{\`) }
	switch {
	case !g.byName:
	case g.text == "*", g.text == "**":
		g.form = everything
	case g.text[0] == '*' && !special(g.text[1:]):
		g.form, g.literal = suffix, g.text[1:]
	case !special(g.text):
		g.form, g.literal = exact, g.text
	}
}

// match reports whether g matches the path of name in dir, a slash-separated directory, "" for the
// top.
func (g *Glob) match(dir, name string) bool {
	switch g.form {
	case everything:
		return true
	case suffix:
		return strings.HasSuffix(name, g.literal)
	case exact:
		return name == g.literal
	}
	if !g.byName && dir != "" {
		name = dir + "/" + name
	}
	return doublestar.MatchUnvalidated(g.text, name)
}
