package discovery

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed conventions.txt
var conventions string

// kinds has the kind of the artifacts in a file by the first word of its row.
var kinds = map[string]Kind{"text": Instruction, "rule": Instruction, "skill": Skill,
	"command": Command, "servers": MCPServer, "settings": MCPServer, "marketplace": Plugin,
	"plugin": Plugin}

// variables has how files refer to environment variables, by the word of their rows.
var variables = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"dollar":   regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`),
		"opencode": regexp.MustCompile(`\{env:([^{}]+)\}`), // others have it in ${env:NAME}
	}
})

// row is a row of the table in conventions.txt.
type row struct {
	pattern, source string
	kind            Kind
	member          string         // which has the MCP servers
	variable        *regexp.Regexp // in their configuration, nil for ${NAME} only
	rank            int
	names           []string // of pattern
	fixed           int      // how many of names, from the first, are literal
	orDir           bool     // other rows look into a directory of this name
	hidden          bool     // the first of names was found by a glob
	words           []string // which the table explains
}

// has reports whether the row has a word.
func (r row) has(word string) bool { return slices.Contains(r.words, word) }

// rowsWith returns the rows of the table that have a word.
func rowsWith(word string) []row {
	return slices.DeleteFunc(slices.Clone(rows()), func(r row) bool { return !r.has(word) })
}

// rows returns the table. Callers must not change it.
var rows = sync.OnceValue(func() (all []row) {
	for line := range strings.Lines(conventions) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		r, err := row{source: strings.Join(fields[2:], " "), rank: len(all)}.at(fields[0])
		if err = cmp.Or(err, r.set(strings.Split(fields[1], ","))); err != nil {
			panic(fmt.Sprintf("discovery: %s: %v", fields[0], err))
		}
		all = append(all, r)
	}
	for i := range all {
		all[i].orDir = slices.ContainsFunc(all,
			func(r row) bool { return strings.HasPrefix(r.pattern, all[i].pattern+"/") })
	}
	return all
})

// set sets what the words of a row say.
func (r *row) set(words []string) error {
	known := []string{"imports", "asked", "anchored", "mode", "list", "gemini", "below", "inside",
		"one"}
	words[0], r.member, _ = strings.Cut(words[0], "=")
	r.kind, r.words = kinds[words[0]], words
	for _, word := range words {
		variable := variables()[word]
		r.variable = cmp.Or(r.variable, variable)
		if kinds[word] == "" && variable == nil && !slices.Contains(known, word) {
			return fmt.Errorf("%q is not a word of the table", word)
		}
	}
	return nil
}

// Patterns returns the paths of all files that are looked for, slash-separated from a root or the
// directory of a plugin, with wildcards.
func Patterns() (all []string) {
	for _, r := range rows() {
		all = append(all, r.pattern)
	}
	return all
}

// at returns the row for another pattern.
func (r row) at(pattern string) (row, error) {
	r.pattern, r.names, r.fixed = pattern, strings.Split(pattern, "/"), 0
	for r.fixed < len(r.names) && !isGlob(r.names[r.fixed]) {
		r.fixed++
	}
	for i, name := range r.names {
		switch _, err := path.Match(name, ""); {
		case name == "" || name == "." || name == "..":
			return r, errors.New(`a single slash must separate names, and no name can be "." or ".."`)
		case strings.ContainsAny(name, "\\:\x00"):
			return r, errors.New("names must not contain a backslash, colon or NUL")
		case err != nil:
			return r, fmt.Errorf("%q is not a valid pattern", name)
		case name == "**" && (i == 0 || i == len(r.names)-1):
			return r, errors.New("** must have a literal directory before it and a name after it")
		}
	}
	return r, nil
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }
