package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
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

// Pattern is a [Query] for lines that match a regular expression or contain a text. It is matched
// against one line at a time, without the line ending.
type Pattern struct {
	expression *regexp.Regexp
	// needles are texts of which every match contains at least one. Searching for them first is
	// much faster. There may be none.
	needles []needle
	// further are more such sets.
	further [][]needle
}

// PatternError is returned for a text that is not a valid pattern, or too large.
type PatternError struct {
	// Pattern is the text that was given.
	Pattern string
	// Why says what is wrong with it.
	Why string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("invalid pattern %q: %s", text.Truncate(e.Pattern, 200), e.Why)
}

// NewPattern compiles a regular expression (RE2, as in Go). The error is a [*PatternError].
func NewPattern(expression string) (*Pattern, error) { return newPattern(expression, false, false) }

// newPattern compiles an expression or, if literal is true, plain text.
func newPattern(pattern string, literal, ignoreCase bool) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, &PatternError{pattern, fmt.Sprintf("it has more than %d bytes", maxPattern)}
	}
	source := pattern
	if literal {
		source = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		source = "(?i)" + source
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, &PatternError{pattern, err.Error()}
	}
	if steps(parsed) > maxSteps {
		why := fmt.Sprintf("it is too complex (the limit is %d steps for each character)", maxSteps)
		return nil, &PatternError{pattern, why}
	}
	expression, err := regexp.Compile(source)
	if err != nil {
		return nil, &PatternError{pattern, err.Error()}
	}
	p := &Pattern{expression: expression, needles: required(parsed)}
	if hasLineBreak(parsed) {
		return nil, &PatternError{pattern, "it contains a line break, but each line is searched by " +
			"itself: search for one of the lines"}
	}
	for _, needles := range requiredSets(parsed) {
		if !slices.Equal(needles, p.needles) {
			p.further = append(p.further, needles)
		}
	}
	return p, nil
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

// Find implements [Query].
func (p *Pattern) Find(ctx context.Context, text []byte, found func(Match) bool) error {
	next := p.candidates(text)
	number, start, unchecked := 1, 0, 0
	for start < len(text) {
		line := next.line(text, start)
		if line < 0 {
			break
		}
		number += bytes.Count(text[start:line], []byte("\n"))
		start = line
		end := len(text)
		if size := bytes.IndexByte(text[start:], '\n'); size >= 0 {
			end = start + size
		}
		if unchecked += end - start + 1; unchecked >= checkInterval {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		at := -1
		if next.has(text[start:end]) {
			at = p.match(ctx, bytes.TrimSuffix(text[start:end], []byte("\r")))
		}
		if at >= 0 && !found(Match{Number: number, Start: start, End: end, At: at}) {
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

// match returns the offset of the first match in line, or -1.
func (p *Pattern) match(ctx context.Context, line []byte) int {
	var match []int
	if len(line) <= longLine {
		match = p.expression.FindIndex(line)
	} else {
		match = p.expression.FindReaderIndex(&cancellable{ctx: ctx, text: line})
	}
	if match == nil {
		return -1
	}
	return match[0]
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
