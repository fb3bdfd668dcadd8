package explore

import (
	"bytes"
	"context"
	"strings"
	"unicode"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// maxWords is how many words are searched for at once.
const maxWords = 16

// words is the [tools.Query] of a text that is no command. A line's score is how many of them it has.
type words [][]byte

// newWords takes the words of a text, in lower case, each once, without the punctuation around
// them. left is how many there were beyond the limit.
func newWords(text string) (w words, left int) {
	seen := make(map[string]bool)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if bare := strings.TrimFunc(word, unicode.IsPunct); bare != "" {
			word = bare
		}
		if seen[word] {
			continue
		}
		seen[word] = true
		if len(w) < maxWords {
			w = append(w, []byte(word))
		} else {
			left++
		}
	}
	return w, left
}

// Full implements [tools.Query]: a line has all of them.
func (w words) Full() int { return len(w) }

func (w words) strings() []string {
	list := make([]string, len(w))
	for i, word := range w {
		list[i] = string(word)
	}
	return list
}

// checkedAtOnce is how much is searched between two looks at the context, in bytes.
const checkedAtOnce = 16 << 10

// Find implements [tools.Query].
func (w words) Find(ctx context.Context, text []byte, found func(tools.Match) bool) error {
	// Lower case can change the length of a line, but never where lines end.
	lower := bytes.ToLower(text)
	if score, _ := w.score(lower); score == 0 {
		return nil
	}
	number, start, unchecked := 1, 0, 0
	for start < len(text) {
		end := start + lineSize(text[start:])
		folded := lower[:lineSize(lower)]
		if unchecked += end - start + 1; unchecked >= checkedAtOnce {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		score, at := w.score(folded)
		m := tools.Match{Number: number, Start: start, End: end, At: min(at, end-start), Score: score}
		if score > 0 && !found(m) {
			return nil
		}
		number++
		start = end + 1
		lower = lower[min(len(folded)+1, len(lower)):]
	}
	return nil
}

// lineSize is the length of the first line of text, without its end.
func lineSize(text []byte) int {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// score is how many of the words a text has, and where the first of them begins.
func (w words) score(folded []byte) (score, first int) {
	first = len(folded)
	for _, word := range w {
		if at := bytes.Index(folded, word); at >= 0 {
			score++
			first = min(first, at)
		}
	}
	return score, first
}
