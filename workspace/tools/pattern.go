package tools

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
	// maxPattern is the longest text to search for, in bytes.
	maxPattern = 10_000
	// maxProgram bounds the steps that a regular expression takes for one character.
	maxProgram = 10_000
	// longLine is the length over which a line is matched in a way that can be cancelled, in bytes.
	longLine = 4 << 10
)

// Syntax says how the text of a [Pattern] is read.
type Syntax int

const (
	// Expression: a regular expression of Go (RE2).
	Expression Syntax = iota
	// Literal: the text itself.
	Literal
)

// Case says whether upper and lower case are told apart.
type Case int

const (
	// CaseMatters: they are.
	CaseMatters Case = iota
	// CaseIgnored: they are not.
	CaseIgnored
)

// Pattern is the [Query] for lines that match a regular expression or hold a text. It is matched against
// one line at a time, without its end.
type Pattern struct {
	expression *regexp.Regexp
	// literals: every match holds one of them. They are searched for first, which is much faster. There
	// may be none.
	literals [][]byte
}

// PatternError: a text that cannot be searched for.
type PatternError struct {
	// Pattern is the text as it was given.
	Pattern string
	// Why is what is wrong with it, in a person's words.
	Why string
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%q cannot be searched for: %s", clip(e.Pattern, 200), e.Why)
}

// NewPattern compiles a text. The error is a [*PatternError].
func NewPattern(text string, s Syntax, c Case) (*Pattern, error) {
	if len(text) > maxPattern {
		return nil, &PatternError{text, fmt.Sprintf("it has more than %d bytes", maxPattern)}
	}
	source := text
	if s == Literal {
		source = regexp.QuoteMeta(text)
	}
	flags := syntax.Perl
	if c == CaseIgnored {
		flags |= syntax.FoldCase
		source = "(?i:" + source + ")"
	}
	if s == Expression {
		// The text alone: around it, a bracket that it leaves open could be closed.
		if _, err := syntax.Parse(text, flags); err != nil {
			return nil, &PatternError{text, err.Error()}
		}
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, &PatternError{text, err.Error()}
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, &PatternError{text, err.Error()}
	}
	if len(program.Inst) > maxProgram {
		return nil, &PatternError{text, fmt.Sprintf("it compiles to %d steps, the limit is %d", len(program.Inst), maxProgram)}
	}
	expression, err := regexp.Compile(source)
	if err != nil {
		return nil, &PatternError{text, err.Error()}
	}
	p := &Pattern{expression: expression}
	for _, literal := range required(parsed) {
		p.literals = append(p.literals, []byte(literal))
	}
	return p, nil
}

// Full implements [Query].
func (*Pattern) Full() int { return 1 }

// Find implements [Query].
func (p *Pattern) Find(ctx context.Context, text []byte, found func(Match) bool) error {
	next := newCandidates(p.literals)
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
		if unchecked += end - start + 1; unchecked >= searchedAtOnce {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		at := p.match(ctx, bytes.TrimSuffix(text[start:end], []byte("\r")))
		if at >= 0 && !found(Match{Number: number, Start: start, End: end, At: at, Score: 1}) {
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

// match is where in line the first match begins, -1 if there is none.
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
