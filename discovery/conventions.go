package discovery

import (
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

	// These are the words of the row, which the table explains.
	text, imports, asked, anchored, mode bool
	settings, list, gemini, plugin       bool
	below, inside, one                   bool
}

// rowsThat returns the rows of the table for which is returns true.
func rowsThat(is func(row) bool) []row {
	return slices.DeleteFunc(slices.Clone(rows()), func(r row) bool { return !is(r) })
}

// rows returns the table. Callers must not change it.
var rows = sync.OnceValue(func() (all []row) {
	for line := range strings.Lines(conventions) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		r, err := parseRow(fields, len(all))
		if err != nil {
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

// parseRow returns the row with these fields.
func parseRow(fields []string, rank int) (row, error) {
	words := strings.Split(fields[1], ",")
	kind, member, _ := strings.Cut(words[0], "=")
	words[0] = kind
	r := row{source: strings.Join(fields[2:], " "), kind: kinds[kind], member: member, rank: rank}
	flags := map[string]*bool{"text": &r.text, "imports": &r.imports, "asked": &r.asked,
		"anchored": &r.anchored, "mode": &r.mode, "settings": &r.settings, "list": &r.list,
		"gemini": &r.gemini, "plugin": &r.plugin, "below": &r.below, "inside": &r.inside,
		"one": &r.one}
	for _, word := range words {
		switch flag, variable := flags[word], variables()[word]; {
		case flag != nil:
			*flag = true
		case variable != nil:
			r.variable = variable
		case kinds[word] == "":
			return r, fmt.Errorf("%q is not a word of the table", word)
		}
	}
	return r.at(fields[0])
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
