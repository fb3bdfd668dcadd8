package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxPattern is the longest pattern, in bytes.
	maxPattern = 10_000
	// maxSteps bounds the size of a compiled expression, because matching may take a step for each
	// part of it and each character.
	maxSteps = 10_000
	// longLine is the length in bytes above which matching a line can be cancelled.
	longLine = 4 << 10
	// checkInterval is the number of bytes searched between two checks of the context.
	checkInterval = 16 << 10
)

// pattern finds lines that match a regular expression or contain a text. It is matched against one
// line at a time, without the line ending. It is safe for concurrent use.
type pattern struct {
	expression *regexp.Regexp
	// literals are texts of which every match contains at least one. Searching for them first is
	// much faster. There may be none.
	literals [][]byte
	// folds reports whether a letter of a literal matches in either case. The literals then have
	// small letters only, and are looked for in a copy of the text with small letters.
	folds bool
}

// invalid returns the error for a pattern or a glob that cannot be used.
func invalid(what, given, why string, args ...any) error {
	return fmt.Errorf("invalid %s %q: %s", what, text.Truncate(given, 200),
		fmt.Sprintf(why, args...))
}

// newPattern compiles a regular expression (RE2, as in Go) or, if literal is true, plain text.
func newPattern(given string, literal, ignoreCase bool) (*pattern, error) {
	if len(given) > maxPattern {
		return nil, invalid("pattern", given, "it has more than %d bytes", maxPattern)
	}
	source := given
	if literal {
		source = regexp.QuoteMeta(given)
	}
	if ignoreCase {
		source = "(?i)" + source
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, invalid("pattern", given, "%v", err)
	}
	if steps(parsed) > maxSteps {
		return nil, invalid("pattern", given, "it is too complex (the limit is %d steps for each "+
			"character)", maxSteps)
	}
	expression, err := regexp.Compile(source)
	if err != nil {
		return nil, invalid("pattern", given, "%v", err)
	}
	if hasLineBreak(parsed) {
		return nil, invalid("pattern", given, "it contains a line break, but each line is "+
			"searched by itself: search for one of the lines")
	}
	p := &pattern{expression: expression, folds: folds(parsed)}
	for _, literal := range required(parsed) {
		text := []byte(literal)
		if p.folds {
			text = small(text)
		}
		p.literals = append(p.literals, text)
	}
	return p, nil
}

// maxLiterals is how many texts are searched for at most before an expression.
const maxLiterals = 8

// required returns texts of which every match of e contains at least one, preferably long ones, or
// nil if it finds none.
func required(e *syntax.Regexp) (best []string) {
	switch e.Op {
	case syntax.OpLiteral:
		others := func(r rune) bool {
			return r == '\n' || r > unicode.MaxASCII && e.Flags&syntax.FoldCase != 0
		}
		for _, part := range strings.FieldsFunc(string(e.Rune), others) {
			best = longer(best, []string{part})
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return required(e.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			best = longer(best, required(sub))
		}
	case syntax.OpAlternate:
		for _, sub := range e.Sub {
			one := required(sub)
			if len(one) == 0 || len(best)+len(one) > maxLiterals {
				return nil
			}
			best = append(best, one...)
		}
	}
	return best
}

// longer returns the set of texts whose shortest one is longer.
func longer(a, b []string) []string {
	shortest := func(set []string) int {
		if len(set) == 0 {
			return 0
		}
		return len(slices.MinFunc(set, func(a, b string) int { return len(a) - len(b) }))
	}
	if shortest(b) > shortest(a) {
		return b
	}
	return a
}

// folds reports whether the case of a letter in e does not count.
func folds(e *syntax.Regexp) bool {
	return e.Op == syntax.OpLiteral && e.Flags&syntax.FoldCase != 0 ||
		slices.ContainsFunc(e.Sub, folds)
}

// small returns a copy of a text with small letters of ASCII.
func small(text []byte) []byte {
	to := bytes.Clone(text)
	for i, c := range to {
		if 'A' <= c && c <= 'Z' {
			to[i] += 'a' - 'A'
		}
	}
	return to
}

// candidates finds the lines that may match, because they have one of the literals.
type candidates struct {
	text     []byte
	literals [][]byte
	next     []int // offset of the next occurrence of each, or the length of text
}

// candidates returns the lines of a text that may match.
func (p *pattern) candidates(text []byte) candidates {
	// The long s and the Kelvin sign equal letters of ASCII if case does not count.
	if len(p.literals) == 0 || p.folds &&
		(bytes.Contains(text, []byte("ſ")) || bytes.Contains(text, []byte("\u212a"))) {
		return candidates{}
	}
	c := candidates{text: text, literals: p.literals, next: make([]int, len(p.literals))}
	if p.folds {
		c.text = small(text)
	}
	for i := range c.next {
		c.next[i] = -1
	}
	return c
}

// line returns the start of the next line at or after from that may match, or -1. from is the start
// of a line and must not decrease.
func (c candidates) line(from int) int {
	if len(c.literals) == 0 {
		return from
	}
	first := len(c.text)
	for i, literal := range c.literals {
		if c.next[i] < from {
			c.next[i] = len(c.text)
			if at := bytes.Index(c.text[from:], literal); at >= 0 {
				c.next[i] = from + at
			}
		}
		first = min(first, c.next[i])
	}
	if first == len(c.text) {
		return -1
	}
	return from + bytes.LastIndexByte(c.text[from:first], '\n') + 1
}

// hasLineBreak reports whether every match of an expression has a line break.
func hasLineBreak(e *syntax.Regexp) bool {
	switch e.Op {
	case syntax.OpLiteral:
		return slices.Contains(e.Rune, '\n')
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		return slices.ContainsFunc(e.Sub, hasLineBreak)
	case syntax.OpRepeat:
		return e.Min > 0 && hasLineBreak(e.Sub[0])
	default:
		return false
	}
}

// steps estimates the number of instructions that e compiles to, up to about maxSteps. Compiling e
// to find out could take a hundred thousand times the size of the pattern.
func steps(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	for _, sub := range e.Sub {
		if n += steps(sub); n > maxSteps {
			break
		}
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min, e.Max, 1)
	}
	return n
}

// find calls found for every matching line of text, in order, until found returns false. The error
// is that of ctx.
func (p *pattern) find(ctx context.Context, text []byte, found func(match) bool) error {
	next := p.candidates(text)
	number, start, unchecked := 1, 0, 0
	for start < len(text) {
		line := next.line(start)
		if line < 0 {
			break
		}
		number += bytes.Count(text[start:line], []byte("\n"))
		start = line
		end := lineEnd(text, start)
		if unchecked += end - start + 1; unchecked >= checkInterval {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		at := p.in(ctx, bytes.TrimSuffix(text[start:end], []byte("\r")))
		if at >= 0 && !found(match{number, start, at}) {
			break
		}
		number++
		start = end + 1
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// in returns the offset of the first match in line, or -1.
func (p *pattern) in(ctx context.Context, line []byte) int {
	var at []int
	if len(line) <= longLine {
		at = p.expression.FindIndex(line)
	} else {
		at = p.expression.FindReaderIndex(&cancellable{ctx: ctx, text: line})
	}
	if at == nil {
		return -1
	}
	return at[0]
}

// cancellable reads a text, and ends early when its context ends.
type cancellable struct {
	ctx   context.Context
	text  []byte
	reads int
}

// ReadRune implements [io.RuneReader].
func (c *cancellable) ReadRune() (rune, int, error) {
	if c.reads++; len(c.text) == 0 || c.reads%64 == 0 && c.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRune(c.text)
	c.text = c.text[n:]
	return r, n, nil
}
