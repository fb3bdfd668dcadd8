package explore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxProgram bounds the steps that a regular expression takes for one character.
	maxProgram = 10_000
	// longLine is the length over which a line is matched in a way that can be cancelled, in bytes.
	longLine = 4 << 10
)

// pattern is the query of /search.
type pattern struct {
	expression *regexp.Regexp
	// literal is in every match; it is searched for first, which is much faster. It may be empty.
	literal []byte
}

func newPattern(expression string) (pattern, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return pattern{}, err
	}
	if len(program.Inst) > maxProgram {
		return pattern{}, fmt.Errorf("it compiles to %d steps, the limit is %d", len(program.Inst), maxProgram)
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return pattern{}, err
	}
	return pattern{compiled, []byte(required(parsed))}, nil
}

// required is the longest literal found that is in every match of e.
func required(e *syntax.Regexp) string {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase == 0 {
			return string(e.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return required(e.Sub[0])
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range e.Sub {
			if literal := required(sub); len(literal) > len(longest) {
				longest = literal
			}
		}
		return longest
	}
	return ""
}

func (pattern) full() int { return 1 }

func (p pattern) find(ctx context.Context, text []byte, found func(number int, line []byte, at, score int) bool) error {
	number, unchecked := 1, 0
	for len(text) > 0 {
		skip := p.skip(text)
		if skip < 0 {
			break
		}
		number += bytes.Count(text[:skip], []byte("\n"))
		line, rest := cutLine(text[skip:])
		if unchecked += len(line) + 1; unchecked >= step {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		at := p.match(ctx, bytes.TrimSuffix(line, []byte("\r")))
		if at >= 0 && !found(number, line, at, 1) {
			break
		}
		number++
		text = rest
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// skip is how far the line of the next possible match is, -1 if there is none.
func (p pattern) skip(text []byte) int {
	if len(p.literal) == 0 {
		return 0
	}
	next := bytes.Index(text, p.literal)
	if next < 0 {
		return -1
	}
	return bytes.LastIndexByte(text[:next], '\n') + 1
}

// match is where in line the first match begins, -1 if there is none.
func (p pattern) match(ctx context.Context, line []byte) int {
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

// cancellable reads a text that ends early when its context does.
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
