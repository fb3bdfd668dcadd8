package discovery

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// readInstruction reads an instruction file. Rules say in their frontmatter what they are for.
func readInstruction(a *Artifact, text string, format Format, o Options) {
	a.Applies.Mode, a.text = Always, text
	if strings.TrimSpace(text) == "" {
		a.invalid("it is empty")
		return
	}
	if format == Text || format == TextWithImports {
		a.Description = firstRunes(firstLine(text), 100)
		return
	}
	f := parseFrontmatter(text, o.MaxFrontmatter)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	if f.yaml != "" {
		a.diagnose(RuleFrontmatterYAML, "the frontmatter is not YAML, it was read line by line: "+f.yaml)
	}
	a.text = f.body
	values := f.values
	if format == CursorRule {
		values = f.lines
	}
	a.describe(values["description"].text)
	a.applies(format, values)
	if a.Description == "" {
		a.Description = firstRunes(firstLine(f.body), 100)
	}
	if strings.TrimSpace(f.body) == "" {
		a.invalid("it is empty but for its frontmatter")
	}
}

// applies reads what a rule is for: each tool has its own key, and its own meaning of a missing one.
func (a *Artifact) applies(format Format, values map[string]value) {
	a.Applies.Globs = a.globs(values[format.globsKey()])
	everywhere := slices.ContainsFunc(a.Applies.Globs, func(g string) bool { return g == "**" || g == "**/*" || g == "*" })
	switch {
	case format == CursorRule && values["alwaysApply"].text == "true",
		format == CopilotRule && everywhere,
		format == ClaudeRule && (everywhere || len(a.Applies.Globs) == 0):
		a.Applies = Applies{Mode: Always}
	case len(a.Applies.Globs) > 0:
		a.Applies.Mode = ByPath
	case a.Description != "":
		a.Applies.Mode = ByDescription
	default:
		a.Applies.Mode = OnRequest
	}
}

// globsKey is the key of the globs.
func (f Format) globsKey() string {
	switch f {
	case CopilotRule:
		return "applyTo"
	case ClaudeRule:
		return "paths"
	default:
		return "globs"
	}
}

// The most globs of a rule, and the most bytes of one and expansions of its braces: matching tries each.
const (
	maxGlobs      = 64
	maxGlob       = 1024
	maxExpansions = 200
)

// globs are the globs of a list, or of a text that separates them by commas.
func (a *Artifact) globs(v value) []string {
	list := v.list
	if list == nil {
		list = splitGlobs(strings.Trim(v.text, "[]"))
	}
	if len(list) > maxGlobs {
		a.diagnose(RuleGlob, fmt.Sprintf("it has %d globs; the first %d are used", len(list), maxGlobs))
		list = list[:maxGlobs]
	}
	var globs []string
	for _, g := range list {
		g = strings.TrimPrefix(strings.TrimPrefix(unquote(g), "./"), "/")
		switch {
		case g == "":
		case len(g) > maxGlob || expansions(g) > maxExpansions || !doublestar.ValidatePattern(g):
			a.diagnose(RuleGlob, fmt.Sprintf("%q is not a glob that is matched", firstRunes(g, 80)))
		default:
			globs = append(globs, g)
		}
	}
	return globs
}

// expansions is at least the number of globs without braces that g stands for, up to some more than the most.
func expansions(g string) int {
	n, alternatives := 1, []int{}
	for i := 0; i < len(g); i++ {
		switch last := len(alternatives) - 1; {
		case g[i] == '\\':
			i++
		case g[i] == '[': // what is in a set is no brace
			for i++; i < len(g) && g[i] != ']'; i++ {
				if g[i] == '\\' {
					i++
				}
			}
		case g[i] == '{':
			alternatives = append(alternatives, 1)
		case g[i] == ',' && last >= 0:
			alternatives[last]++
		case g[i] == '}' && last >= 0:
			n *= alternatives[last]
			alternatives = alternatives[:last]
		}
		if n > maxExpansions {
			break
		}
	}
	return n
}

// splitGlobs splits at commas outside braces.
func splitGlobs(text string) []string {
	var list []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth <= 0 {
				list = append(list, text[from:i])
				from = i + 1
			}
		}
	}
	return append(list, text[from:])
}

// matches reports whether the rule is for the file at rel, slash-separated from the directory of its level.
func (a Applies) matches(rel string) bool {
	for _, g := range a.Globs {
		name := rel
		if !strings.Contains(g, "/") {
			name = path.Base(rel)
		}
		if ok, _ := doublestar.Match(g, name); ok {
			return true
		}
	}
	return false
}
