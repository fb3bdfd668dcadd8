package explore

import (
	"bytes"
	"context"
	"strings"
	"unicode"
)

// maxWords is how many words are searched for at once.
const maxWords = 16

// words is the query of a text that is no command. A line's score is how many of them it has.
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

func (w words) full() int { return len(w) }

func (w words) strings() []string {
	list := make([]string, len(w))
	for i, word := range w {
		list[i] = string(word)
	}
	return list
}

func (w words) find(ctx context.Context, text []byte, found func(number int, line []byte, at, score int) bool) error {
	// Lower case can change the length of a line, but never where lines end.
	lower := bytes.ToLower(text)
	if score, _ := w.score(lower); score == 0 {
		return nil
	}
	number, unchecked := 1, 0
	for len(text) > 0 {
		var line, folded []byte
		line, text = cutLine(text)
		folded, lower = cutLine(lower)
		if unchecked += len(line) + 1; unchecked >= step {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			unchecked = 0
		}
		score, at := w.score(folded)
		if score > 0 && !found(number, line, min(at, len(line)), score) {
			return nil
		}
		number++
	}
	return nil
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
