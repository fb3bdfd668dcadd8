package tools

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// maxGlob is the longest glob, in bytes.
	maxGlob = 1024
	// maxBraces and maxDeep are the most braces and "**" of a glob: each makes matching slower by a factor.
	maxBraces = 8
	maxDeep   = 8
	// maxChoices is the most ways to choose one of each brace: all of them are tried.
	maxChoices = 256
)

// Glob is a pattern for paths: "*" and "?" match within a name, "**" across directories, "[a-z]" one of a
// set, "{a,b}" either. One without a slash is compared with the last name of a path, any other with
// the whole path. It is immutable and safe for concurrent use.
type Glob struct {
	text string
	// byName says that the last name of a path decides.
	byName bool
	form   globForm
	// literal is what a form other than globbed compares.
	literal string
}

// globForm says how a glob is compared.
type globForm int

const (
	globbed    globForm = iota
	everything          // matches any
	ending              // ends with the literal
	equal               // equals the literal
)

// GlobError: a text that is no glob, or too costly a one.
type GlobError struct {
	// Glob is the text as it was given.
	Glob string
	// Why is what is wrong with it, in a person's words.
	Why string
}

func (e *GlobError) Error() string { return fmt.Sprintf("%q is no glob: %s", e.Glob, e.Why) }

// NewGlob compiles a glob. The error is a [*GlobError].
func NewGlob(text string) (*Glob, error) {
	switch {
	case text == "":
		return nil, &GlobError{text, "it is empty"}
	case len(text) > maxGlob:
		return nil, &GlobError{text[:32] + "…", fmt.Sprintf("it has more than %d bytes", maxGlob)}
	case !doublestar.ValidatePattern(text):
		return nil, &GlobError{text, "a bracket or a brace is not closed, or nothing follows a backslash"}
	case strings.Count(text, "{") > maxBraces:
		return nil, &GlobError{text, fmt.Sprintf("it has more than %d braces", maxBraces)}
	case choices(text) > maxChoices:
		return nil, &GlobError{text, fmt.Sprintf("its braces make more than %d choices", maxChoices)}
	case strings.Count(text, "**") > maxDeep:
		return nil, &GlobError{text, fmt.Sprintf("it has more than %d \"**\"", maxDeep)}
	}
	g := &Glob{text: strings.TrimPrefix(text, "./")}
	if rest, ok := strings.CutPrefix(g.text, "**/"); ok && !strings.Contains(rest, "/") && !strings.Contains(rest, "**") && rest != "" {
		g.text = rest // at any depth: the name decides
	}
	g.byName = !strings.Contains(g.text, "/")
	g.simplify()
	return g, nil
}

// simplify finds the cheapest form of a glob that is compared with names.
func (g *Glob) simplify() {
	special := func(text string) bool { return strings.ContainsAny(text, `*?[{\`) }
	switch {
	case !g.byName:
	case g.text == "*", g.text == "**":
		g.form = everything
	case g.text[0] == '*' && !special(g.text[1:]):
		g.form, g.literal = ending, g.text[1:]
	case !special(g.text):
		g.form, g.literal = equal, g.text
	}
}

// Match reports whether g matches a slash-separated path.
func (g *Glob) Match(path string) bool {
	dir, name := cutLast(path)
	return g.match(dir, name)
}

// match is Match of the path of name in the directory dir, "" for the top.
func (g *Glob) match(dir, name string) bool {
	switch g.form {
	case everything:
		return true
	case ending:
		return strings.HasSuffix(name, g.literal)
	case equal:
		return name == g.literal
	}
	if g.byName {
		return doublestar.MatchUnvalidated(g.text, name)
	}
	return doublestar.MatchUnvalidated(g.text, joinSlash(dir, name))
}

// choices is at least the number of globs without braces that a glob stands for, up to some more than the most.
func choices(text string) int {
	n, open := 1, []int{} // the alternatives of each brace that is open
	for i := 0; i < len(text) && n <= maxChoices; i++ {
		switch last := len(open) - 1; {
		case text[i] == '\\':
			i++
		case text[i] == '[':
			i += setEnd(text[i:])
		case text[i] == '{':
			open = append(open, 1)
		case text[i] == ',' && last >= 0:
			open[last]++
		case text[i] == '}' && last >= 0:
			n *= open[last]
			open = open[:last]
		}
	}
	return n
}

// setEnd is where the set at the beginning of text ends, the last byte if it does not.
func setEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return len(text) - 1
}
