package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
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

// Pattern is a [Query] for lines that match a regular expression or contain a text. It is matched
// against one line at a time, without the line ending.
type Pattern struct {
	expression *regexp.Regexp
	// literals are texts of which every match contains at least one. Searching for them first is
	// much faster. There may be none.
	literals [][]byte
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
	p := &Pattern{expression: expression}
	for _, literal := range required(parsed) {
		p.literals = append(p.literals, []byte(literal))
	}
	return p, nil
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
	next := candidates{literals: p.literals}
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
		at := p.match(ctx, bytes.TrimSuffix(text[start:end], []byte("\r")))
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

// maxLiterals is the most literals that are searched for before an expression.
const maxLiterals = 8

// required returns texts of which every match of e contains at least one, preferably few and long
// ones, or nil if it finds none.
func required(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase != 0 {
			return spellings(e.Rune)
		}
		if text := string(e.Rune); !strings.Contains(text, "\n") {
			return []string{text}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return required(e.Sub[0])
		}
	case syntax.OpConcat:
		return requiredOfAll(e.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range e.Sub {
			one := required(sub)
			if len(one) == 0 || len(all)+len(one) > maxLiterals {
				return nil
			}
			all = append(all, one...)
		}
		return all
	}
	return nil
}

// requiredOfAll is required for a sequence of expressions, whose exact texts join to longer ones.
func requiredOfAll(sequence []*syntax.Regexp) []string {
	var best []string
	consider := func(texts ...string) {
		if worth(texts) > worth(best) {
			best = texts
		}
	}
	run := "" // what the preceding expressions match exactly
	for _, e := range sequence {
		if text, ok := exactly(e); ok {
			run += text
			continue
		}
		if e.Op == syntax.OpPlus {
			if text, ok := exactly(e.Sub[0]); ok { // the match begins and ends with it
				consider(run + text)
				run = text
				continue
			}
		}
		consider(run)
		consider(required(e)...)
		run = ""
	}
	consider(run)
	return best
}

// maxExact is the longest text that exactly returns, in bytes.
const maxExact = 64

// exactly returns the text that e matches, if there is only one.
func exactly(e *syntax.Regexp) (text string, ok bool) {
	switch e.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return "", true
	case syntax.OpLiteral:
		text = string(e.Rune)
		return text, e.Flags&syntax.FoldCase == 0 && len(text) <= maxExact &&
			!strings.Contains(text, "\n")
	case syntax.OpCapture:
		return exactly(e.Sub[0])
	case syntax.OpRepeat:
		text, ok = exactly(e.Sub[0])
		if !ok || e.Min != e.Max || e.Min*len(text) > maxExact {
			return "", false
		}
		return strings.Repeat(text, e.Min), true
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			one, ok := exactly(sub)
			if !ok || len(text)+len(one) > maxExact {
				return "", false
			}
			text += one
		}
		return text, true
	default:
		return "", false
	}
}

// worth rates a set of texts to search for: a long shortest text is good, many texts are slow.
func worth(texts []string) int {
	if len(texts) == 0 || texts[0] == "" {
		return 0
	}
	shortest := len(texts[0])
	for _, text := range texts {
		shortest = min(shortest, len(text))
	}
	return 4*shortest - len(texts) + maxLiterals
}

// spellings returns every mixture of upper and lower case of a part of runes: the longest part, up
// to maxExact, that does not have too many of them.
func spellings(runes []rune) []string {
	var best []string
	size := 0
	for from := range runes {
		texts := []string{""}
		for i := from; i < min(len(runes), from+maxExact) && runes[i] != '\n'; i++ {
			forms := folds(runes[i])
			if len(texts)*len(forms) > maxLiterals {
				break
			}
			var longer []string
			for _, text := range texts {
				for _, form := range forms {
					longer = append(longer, text+string(form))
				}
			}
			texts = longer
			if i-from+1 > size {
				best, size = texts, i-from+1
			}
		}
	}
	return best
}

// folds returns the runes that differ from r only by case, including r.
func folds(r rune) []rune {
	all := []rune{r}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		all = append(all, other)
	}
	return all
}

// candidates finds the lines that may match by searching for literals.
type candidates struct {
	literals [][]byte
	// next is the offset of the next occurrence of each literal, len(text) if there is none.
	next  [maxLiterals]int
	begun bool
}

// line returns the start of the next line at or after from that may match, or -1. from is the start
// of a line and must not decrease.
func (c *candidates) line(text []byte, from int) int {
	if len(c.literals) == 0 {
		return from
	}
	first := len(text)
	for i, literal := range c.literals {
		if !c.begun || c.next[i] < from {
			c.next[i] = len(text)
			if at := bytes.Index(text[from:], literal); at >= 0 {
				c.next[i] = from + at
			}
		}
		first = min(first, c.next[i])
	}
	c.begun = true
	if first == len(text) {
		return -1
	}
	return from + bytes.LastIndexByte(text[from:first], '\n') + 1
}
