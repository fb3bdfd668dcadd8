package registry

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// An entry of a registry can name any program in PATH. No list of the programs that run others is
// complete, so an entry can hardly say anything to its program: its arguments are switches and
// words, without a path, a script or an address, and its environment variables are switches of the
// agent.

// otherPrograms are programs of systems and languages that start other programs or change files,
// without the digits of their versions. None is an agent.
//
//go:embed programs.txt
var otherPrograms string

// isOther reports whether a program is one of the machine's that starts others, such as a shell, an
// interpreter, sudo or a dynamic linker.
func isOther(program string) bool {
	name, _, _ := strings.Cut(strings.ToLower(program), ".") // "vim.tiny", "python3.12"
	if strings.HasPrefix(name, "ld-") {
		return true
	}
	name = strings.TrimSuffix(strings.TrimRight(name, "0123456789-"), "-static")
	return slices.Contains(strings.Fields(otherPrograms), name)
}

// isOwn reports whether a variable begins with a word of names, those of an agent, as in
// AUGMENT_DISABLE_AUTO_UPDATE of a package in @augmentcode.
func isOwn(variable string, names ...string) bool {
	first, _, found := strings.Cut(strings.ToLower(variable), "_")
	if !found || len(first) < 3 {
		return false
	}
	for _, name := range names {
		words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, first) }) {
			return true
		}
	}
	return false
}
