package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Meant returns "; did you mean …?" with the value of the key in names that word most likely stands
// for, or "". Upper case, dashes, underscores and spaces do not matter.
func Meant(word string, names map[string]string) string {
	meant, _ := nearest(word, names)
	if meant == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", Plain(meant))
}

// Misspelled reports whether word is most likely one of names with a few wrong letters.
func Misspelled(word string, names map[string]string) bool {
	_, d := nearest(word, names)
	return d < part
}

// nearest returns the value of the key in names that is most similar to word, and its distance.
func nearest(word string, names map[string]string) (meant string, best int) {
	best = none
	typed := bare(word)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if d := distance(typed, bare(name)); d < best {
			best, meant = d, names[name]
		}
	}
	return meant, best
}

// part is the least distance of words of which one is a part of the other, and none that of words
// that are not similar.
const part, none = 100, 1000

// Same returns names for [Meant] that stand for themselves.
func Same(names []string) map[string]string {
	same := make(map[string]string, len(names))
	for _, name := range names {
		same[name] = name
	}
	return same
}

// bare returns the letters and digits of a word.
func bare(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// distance returns how many letters are missing, too many, wrong or swapped in word, part and more
// if word begins name or contains it, or none. The end of a name says little: --file is not
// --log-file.
func distance(word, name string) int {
	a, b := []rune(word), []rune(name)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := range b {
			rows[0][j+1] = j + 1
			if i == 0 {
				continue
			}
			wrong := 1
			if a[i-1] == b[j] {
				wrong = 0
			}
			rows[i][j+1] = min(rows[i-1][j+1]+1, rows[i][j]+1, rows[i-1][j]+wrong)
			if i > 1 && j > 0 && a[i-1] == b[j-1] && a[i-2] == b[j] {
				rows[i][j+1] = min(rows[i][j+1], rows[i-2][j-1]+1)
			}
		}
	}
	d := rows[len(a)][len(b)]
	const shortest = 3 // of a part that says something
	switch {
	case len(a) > 1 && d <= min(2, max(1, len(a)/3)):
		return d
	case min(len(a), len(b)) >= shortest &&
		(strings.HasPrefix(name, word) || strings.Contains(word, name)):
		return part + d
	}
	return none
}
