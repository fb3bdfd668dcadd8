package tools

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode"
)

// needle is a text that a match contains.
type needle struct {
	// text has small letters only if fold is true. Then letters of ASCII match in either case.
	text string
	fold bool
}

// maxNeedles is the most texts that are searched for before an expression.
const maxNeedles = 8

// required returns texts of which every match of e contains at least one, preferably few and long
// ones, or nil if it finds none.
func required(e *syntax.Regexp) []needle {
	switch e.Op {
	case syntax.OpLiteral:
		if e.Flags&syntax.FoldCase != 0 {
			return folded(e.Rune)
		}
		if text := string(e.Rune); !strings.Contains(text, "\n") {
			return []needle{{text: text}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return required(e.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, set := range requiredSets(e) {
			if worth(set) > worth(best) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range e.Sub {
			one := required(sub)
			if len(one) == 0 || len(all)+len(one) > maxNeedles {
				return nil
			}
			all = append(all, one...)
		}
		return all
	}
	return nil
}

// requiredSets returns several sets of texts, of each of which every match contains at least one:
// those of the parts of a sequence, whose exact texts join to longer ones.
func requiredSets(e *syntax.Regexp) (sets [][]needle) {
	for e.Op == syntax.OpCapture {
		e = e.Sub[0]
	}
	if e.Op != syntax.OpConcat {
		return nil
	}
	consider := func(set ...needle) {
		if worth(set) > 0 {
			sets = append(sets, set)
		}
	}
	run := "" // what the preceding expressions match exactly
	for _, sub := range e.Sub {
		if text, ok := exactly(sub); ok {
			run += text
			continue
		}
		if sub.Op == syntax.OpPlus {
			if text, ok := exactly(sub.Sub[0]); ok { // the match begins and ends with it
				consider(needle{text: run + text})
				run = text
				continue
			}
		}
		consider(needle{text: run})
		consider(required(sub)...)
		run = ""
	}
	consider(needle{text: run})
	return sets
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
func worth(set []needle) int {
	if len(set) == 0 || set[0].text == "" {
		return 0
	}
	shortest := len(set[0].text)
	for _, n := range set {
		shortest = min(shortest, len(n.text))
	}
	return 4*shortest - len(set) + maxNeedles
}

// folded returns the texts to search for if case does not count: the longest part of ASCII, or every
// spelling of a short part with other letters.
func folded(runes []rune) []needle {
	best, from := "", 0
	for i := 0; i <= len(runes); i++ {
		if i < len(runes) && runes[i] < unicode.MaxASCII && runes[i] != '\n' {
			continue
		}
		if i-from > len(best) {
			best = strings.ToLower(string(runes[from:min(i, from+maxExact)]))
		}
		from = i + 1
	}
	if len(best) > 1 {
		return []needle{{text: best, fold: true}}
	}
	var all []needle
	for _, text := range spellings(runes) {
		all = append(all, needle{text: text})
	}
	return all
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
			if len(texts)*len(forms) > maxNeedles {
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

// candidates finds the lines that may match by searching for needles.
type candidates struct {
	finders []finder
	further [][]needle
}

// candidates returns the lines of a text that may match.
func (p *Pattern) candidates(text []byte) *candidates {
	c := &candidates{}
	if len(p.needles) == 0 || p.hasOtherCase(text) {
		return c
	}
	c.further = p.further
	c.finders = make([]finder, len(p.needles))
	for i, n := range p.needles {
		c.finders[i] = newFinder(n)
	}
	return c
}

// hasOtherCase reports whether a text has a letter that is not of ASCII but equals one of a needle
// if case does not count: the long s and the Kelvin sign.
func (p *Pattern) hasOtherCase(text []byte) bool {
	letters := func(n needle) bool { return n.fold && strings.ContainsAny(n.text, "sk") }
	for _, set := range append([][]needle{p.needles}, p.further...) {
		for _, n := range set {
			if letters(n) {
				return bytes.Contains(text, []byte("ſ")) || bytes.Contains(text, []byte("\u212a"))
			}
		}
	}
	return false
}

// line returns the start of the next line at or after from that may match, or -1. from is the start
// of a line and must not decrease.
func (c *candidates) line(text []byte, from int) int {
	if len(c.finders) == 0 {
		return from
	}
	first := len(text)
	for i := range c.finders {
		first = min(first, c.finders[i].find(text, from))
	}
	if first == len(text) {
		return -1
	}
	return from + bytes.LastIndexByte(text[from:first], '\n') + 1
}

// has reports whether a line has one of each of the further sets.
func (c *candidates) has(line []byte) bool {
	for _, set := range c.further {
		found := false
		for _, n := range set {
			f := newFinder(n)
			if found = f.find(line, 0) < len(line); found {
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// common has the letters from the most frequent to the rarest in source code.
const common = " etroainslcdupmfhgbyv_w.kx0zjq1"

// finder finds the occurrences of a needle in a text, in order.
type finder struct {
	needle
	at   int     // offset of the rarest byte of a needle whose case does not count
	both [2]byte // that byte in both cases
	next [2]int  // their next offsets, the length of the text if there is none
	last int     // the last result, -1 before the first
}

func newFinder(n needle) finder {
	f := finder{needle: n, last: -1, next: [2]int{-1, -1}}
	if !n.fold {
		return f
	}
	rarest := -1
	for i := range len(n.text) {
		rank := strings.IndexByte(common, n.text[i])
		if rank < 0 {
			rank = len(common)
		}
		if rank > rarest {
			rarest, f.at = rank, i
		}
	}
	c := n.text[f.at]
	f.both = [2]byte{c, c}
	if 'a' <= c && c <= 'z' {
		f.both[1] = c - 'a' + 'A'
	}
	return f
}

// find returns the offset of the first occurrence at or after from, which must not decrease, or the
// length of the text.
func (f *finder) find(text []byte, from int) int {
	if f.last >= from {
		return f.last
	}
	if f.fold {
		f.last = f.findFolded(text, from)
		return f.last
	}
	f.last = len(text)
	if at := bytes.Index(text[from:], []byte(f.text)); at >= 0 {
		f.last = from + at
	}
	return f.last
}

// findFolded is find if case does not count: it looks for the rarest byte in both cases.
func (f *finder) findFolded(text []byte, from int) int {
	for at := from + f.at; ; at++ {
		for i, c := range f.both {
			if f.next[i] < at {
				f.next[i] = len(text)
				if n := bytes.IndexByte(text[min(at, len(text)):], c); n >= 0 {
					f.next[i] = at + n
				}
			}
		}
		at = min(f.next[0], f.next[1])
		if at == len(text) {
			return at
		}
		if begin := at - f.at; begin+len(f.text) <= len(text) && f.equals(text[begin:]) {
			return begin
		}
	}
}

// equals reports whether text begins with the needle.
func (f *finder) equals(text []byte) bool {
	for i := range len(f.text) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != f.text[i] {
			return false
		}
	}
	return true
}
