package tools

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode"
)

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
