package mcpclient

import (
	"slices"
	"strconv"
	"strings"
)

// longestName bounds a server's or a tool's part of a name in the catalogue, so that both and the dot fit what models
// take.
const longestName = 64

// distinct makes of names, in order, ones that differ and are of letters, digits, "_" and "-" only.
func distinct(names []string) []string { return distinctFrom(make([]string, len(names)), names) }

// distinctFrom is distinct where some of the names, those that are not "" in given, were made before.
func distinctFrom(given, names []string) []string {
	out := slices.Clone(given)
	taken := map[string]bool{}
	for _, name := range given {
		taken[name] = true
	}
	for i, name := range names {
		if plain := plainName(name); plain == name && out[i] == "" { // those that need no change keep their name
			if !taken[plain] {
				out[i], taken[plain] = plain, true
			}
		}
	}
	for i, name := range names {
		for n := 1; out[i] == ""; n++ {
			candidate := plainName(name)
			if n > 1 {
				suffix := "_" + strconv.Itoa(n)
				candidate = candidate[:min(len(candidate), longestName-len(suffix))] + suffix
			}
			if !taken[candidate] {
				out[i], taken[candidate] = candidate, true
			}
		}
	}
	return out
}

func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, name)
	if plain == "" {
		return "_"
	}
	return plain[:min(len(plain), longestName)]
}
