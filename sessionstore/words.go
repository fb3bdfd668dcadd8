package sessionstore

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func isWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.So, unicode.Co) }

// IsAlone reports whether a character is a word by itself: a character of a script without spaces,
// an emoji, or another symbol.
func IsAlone(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.So)
}

// isPrefix reports whether a word of a query also matches the beginning of a longer word.
func isPrefix(word string) bool {
	last, _ := utf8.DecodeLastRuneInString(word)
	return utf8.RuneCountInString(word) > 1 && !IsAlone(last)
}

// Words yields the words of a text in the form in which they are compared, in lower case and
// without accents, and the place of each.
func Words(text string) iter.Seq2[string, Match] {
	return func(yield func(string, Match) bool) {
		var word []rune
		at := Match{}
		end := func() bool {
			if len(word) == 0 {
				return true
			}
			letters := string(word)
			word = word[:0]
			return yield(letters, at)
		}
		for i, r := range text {
			next := i + utf8.RuneLen(r)
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(r)) {
				next = i + 1 // an invalid byte
			}
			alone := IsAlone(r)
			switch {
			case 0x300 <= r && r <= 0x36f && len(word) > 0: // an accent
				at.End = next
				continue
			case !isWord(r) || alone:
				if !end() {
					return
				}
			}
			if !isWord(r) {
				continue
			}
			if len(word) == 0 {
				at.Start = i
			}
			word, at.End = append(word, plainLetter(r)), next
			if alone && !end() {
				return
			}
		}
		end()
	}
}

// plainLetter returns a letter in lower case, and without accents if that leaves a letter from a to
// z.
func plainLetter(r rune) rune {
	if r >= utf8.RuneSelf {
		parts := []rune(string(norm.NFD.PropertiesString(string(r)).Decomposition()))
		if len(parts) > 0 && parts[0] < utf8.RuneSelf {
			r = parts[0]
		}
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// Matches returns the places of a query's terms in a text, in order, for stores whose search finds
// only the text. It returns none if a term is missing.
func (q SearchQuery) Matches(text string) (matches []Match) {
	var (
		words  []string
		places []Match
	)
	for word, at := range Words(text) {
		words, places = append(words, word), append(places, at)
	}
	var found []Match // from the first to the last word
	for _, t := range q.Terms() {
		before := len(found)
		var term []string
		for word := range Words(t.Text) {
			term = append(term, word)
		}
		last := len(term) - 1
		for i := 0; i+last < len(words); i++ {
			if slices.Equal(term[:last], words[i:i+last]) && (words[i+last] == term[last] ||
				t.Prefix && strings.HasPrefix(words[i+last], term[last])) {
				found = append(found, Match{Start: i, End: i + last})
			}
		}
		if len(found) == before {
			return nil
		}
	}
	slices.SortFunc(found, func(a, b Match) int { return a.Start - b.Start })
	end := -1 // the last word of the last match
	for _, f := range found {
		if f.Start > end {
			matches = append(matches, places[f.Start])
		}
		end = max(end, f.End)
		matches[len(matches)-1].End = places[end].End
	}
	return matches
}
