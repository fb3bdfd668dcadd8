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

// maxLiterals bounds how many texts are searched for instead of an expression.
const maxLiterals = 8

// required finds texts of which every match of e holds one. It prefers few and long ones, and
// is empty if it finds none.
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

// requiredOfAll is required of a sequence, in which neighbours make longer texts.
func requiredOfAll(sequence []*syntax.Regexp) []string {
	var best []string
	consider := func(texts ...string) {
		if worth(texts) > worth(best) {
			best = texts
		}
	}
	run := "" // what the last ones match, one after the other
	for _, e := range sequence {
		if text, ok := exactly(e); ok {
			run += text
			continue
		}
		if e.Op == syntax.OpPlus {
			if text, ok := exactly(e.Sub[0]); ok { // it begins and ends with it
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

// maxExact is the longest text that is put together from an expression, in bytes.
const maxExact = 64

// exactly is the one text that e matches, if there is only one.
func exactly(e *syntax.Regexp) (text string, ok bool) {
	switch e.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return "", true
	case syntax.OpLiteral:
		text = string(e.Rune)
		return text, e.Flags&syntax.FoldCase == 0 && len(text) <= maxExact && !strings.Contains(text, "\n")
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

// worth compares sets of texts: the shortest one counts, and a set of many is slow.
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

// spellings are those of a part of runes in every mixture of upper and lower case: of the longest part
// that does not have too many, the first.
func spellings(runes []rune) []string {
	var best []string
	size := 0
	for from := range runes {
		texts := []string{""}
		for i := from; i < len(runes) && runes[i] != '\n'; i++ {
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

// folds are the runes that equal r but for case, r among them.
func folds(r rune) []rune {
	all := []rune{r}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		all = append(all, other)
	}
	return all
}

// candidates finds the lines in which a match can be, by literals.
type candidates struct {
	literals [][]byte
	// next is where each literal is next, len(text) if nowhere.
	next  [maxLiterals]int
	begun bool
}

func newCandidates(literals [][]byte) candidates { return candidates{literals: literals} }

// line is where the next line begins, at or behind from, in which a match can be; -1 if there is none.
// from is where a line begins, and never less than before.
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
