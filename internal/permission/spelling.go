package permission

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// namesOf returns the names in a path, folded by [fold].
func namesOf(p string) []string { return namesIn(p, fold) }

func namesIn(p string, fold func(string) string) []string {
	names := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
	for i, name := range names {
		names[i] = fold(name)
	}
	return names
}

// fold returns the same text for all spellings that some file system treats as the same name. It
// ignores what [spelling] ignores, and a stream after a colon.
func fold(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return spelling(name)
}

// spelling returns a name without upper and lower case, how characters are composed, invisible
// characters, and dots and spaces at the end.
func spelling(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		name = strings.ToLower(name)
	} else {
		name = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
				unicode.Variation_Selector) {
				return -1
			}
			return r
		}, name)
		lower := func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }
		name = strings.ReplaceAll(strings.Map(lower, norm.NFKD.String(name)), "ß", "ss")
		name = norm.NFKD.String(name)
	}
	return cmp.Or(strings.TrimRight(name, ". "), name)
}

// spelledNames returns names in all spellings that patterns are compared with. No file has a name
// that is too long.
func spelledNames(names []string) (all []string) {
	for _, name := range names {
		if len(name) <= maxPath {
			all = append(all, spellings(name, fold)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// spellings returns a path as it is, in lower case, and with its names as fold returns them.
func spellings(name string, fold func(string) string) []string {
	return slices.Compact(
		[]string{name, strings.ToLower(name), path.Join(namesIn(name, fold)...)})
}

// mayBeBelow reports whether some file system may take name for dir or a path below it.
func mayBeBelow(dir, name string) bool {
	above, names := namesOf(dir), namesOf(name)
	return len(above) <= len(names) && slices.Equal(above, names[:len(above)])
}

// isBelow reports whether name is dir or a path below it. Both are clean and absolute.
func isBelow(dir, name string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
