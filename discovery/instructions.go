package discovery

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/internal/text"
)

// readInstruction reads an instruction file. The frontmatter of a rule says what it applies to.
func readInstruction(a *Artifact, content string) {
	a.Applies.Mode, a.text = Always, content
	if strings.TrimSpace(content) == "" {
		a.invalid("it is empty")
		return
	}
	if a.row.text {
		a.Description = oneLine(firstLine(content), 100)
		return
	}
	f := parseFrontmatter(content)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	a.text, a.line = f.body, strings.Count(content, "\n")-strings.Count(f.body, "\n")
	values := f.values
	a.describe(values["description"].text)
	switch {
	case a.Description == "" && values["regex"].text != "":
		a.describe("For files whose content matches " + values["regex"].text)
	case path.Base(a.rel) == "README.md" && strings.HasPrefix(a.rel, ".openhands/"):
		a.unused("OpenHands does not read it")
	case values["triggers"].text != "":
		a.describe("When the task mentions " + values["triggers"].text)
	}
	if a.row.mode {
		_, mode, _ := strings.Cut(a.rel, "rules-")
		mode, _, _ = strings.Cut(mode, "/")
		a.describe(fmt.Sprintf("For the mode %s: %s", mode, oneLine(firstLine(f.body), 100)))
	}
	globs, given := a.readGlobs(values)
	a.Applies = applies(a.row, values, globs, given, a.Description != "")
	if a.Description == "" {
		a.Description = oneLine(firstLine(f.body), 100)
	}
	if strings.TrimSpace(f.body) == "" {
		a.invalid("it has frontmatter but no text")
	}
}

// wishes has the modes that rules name.
var wishes = map[string]Mode{
	"always": Always, "always_on": Always, "manual": OnRequest, "glob": ByPath, "fileMatch": ByPath,
	"auto": ByDescription, "agent_requested": ByDescription, "model_decision": ByDescription,
}

// applies returns what a rule of r applies to. Each tool has its own keys for that. given says that
// the rule has globs, usable or not, and described that it has a description.
func applies(r row, values map[string]value, globs []string, given, described bool) Applies {
	wish := wishes[cmp.Or(values["trigger"].text, values["inclusion"].text, values["type"].text)]
	always := values["alwaysApply"]
	saysNothing := wish == "" && !given && !always.is("false") &&
		values["regex"].text == "" && values["triggers"].text == ""
	matchesAll := r.anchored && slices.ContainsFunc(globs,
		func(g string) bool { return g == "**" || g == "**/*" })
	useGlobs := wish != ByDescription && len(globs) > 0
	switch {
	case wish == OnRequest:
		return Applies{Mode: OnRequest}
	case wish == Always, always.is("true"), saysNothing && !r.asked, useGlobs && matchesAll:
		return Applies{Mode: Always}
	case useGlobs:
		return Applies{ByPath, globs}
	case described:
		return Applies{Mode: ByDescription}
	}
	return Applies{Mode: OnRequest}
}

// Limits on the globs of a rule. Matching tries each expansion of their braces.
const (
	maxGlobs      = 64
	maxGlob       = 1024 // bytes
	maxExpansions = 200
)

// globList returns the globs in a list, or in text that separates them by commas.
func globList(v value) (list []string) {
	written := v.list
	if written == nil {
		written = []string{v.text}
		if inner, ok := cutBrackets(v.text); ok {
			written[0] = inner
		}
	}
	for _, item := range written {
		for _, glob := range splitGlobs(item) {
			if glob = unquote(glob); strings.Contains(glob, ",") {
				list = append(list, splitGlobs(glob)...)
			} else {
				list = append(list, glob)
			}
		}
	}
	return list
}

// cutBrackets returns what is in the brackets of a list. A set is not a list, as in [ab].ts.
func cutBrackets(text string) (inner string, ok bool) {
	inner, ok = strings.CutPrefix(strings.TrimSpace(text), "[")
	if !ok || !strings.HasSuffix(inner, "]") {
		return text, false
	}
	inner = inner[:len(inner)-1]
	quoted := strings.TrimLeft(inner, " ")
	return inner, strings.HasPrefix(quoted, `"`) || strings.HasPrefix(quoted, "'") ||
		!strings.Contains(inner, "]")
}

// anyDepth replaces "**" before other characters, as in **.ts, by "**/*".
func anyDepth(glob string) string {
	parts := strings.Split(glob, "/")
	for i, part := range parts {
		if rest, ok := strings.CutPrefix(part, "**"); ok && strings.Trim(rest, "*},") != "" &&
			rest[0] != ',' && rest[0] != '}' && rest[0] != '*' {
			parts[i] = "**/*" + rest
		}
	}
	return strings.Join(parts, "/")
}

// readGlobs reads the globs in the first key that has some, usable or not. given reports whether
// there is one.
func (a *Artifact) readGlobs(values map[string]value) (globs []string, given bool) {
	for _, key := range []string{"paths", "globs", "fileMatchPattern", "applyTo"} {
		if v, has := values[key]; has && !given {
			globs, given = a.usableGlobs(globList(v))
		}
	}
	return globs, given
}

// usableGlobs returns the globs in a list that can be used. given reports whether any are not
// empty.
func (a *Artifact) usableGlobs(list []string) (globs []string, given bool) {
	if len(list) > maxGlobs {
		a.diagnose("it has %d globs; the first %d are used", len(list), maxGlobs)
		list = list[:maxGlobs]
	}
	for _, g := range list {
		g = anyDepth(strings.TrimPrefix(strings.TrimPrefix(unquote(g), "./"), "/"))
		given = given || g != ""
		if strings.HasSuffix(g, "/") {
			g += "**" // what is in the directory
		}
		switch {
		case g == "":
		case g[0] == '!' && !strings.HasPrefix(g, "!("):
			a.diagnose("the glob %q is not used: it excludes files, which is not supported",
				text.Truncate(g, 80))
		case isExtended(g):
			a.diagnose("the glob %q is not used: patterns such as @(a|b) are not supported; "+
				"write {a,b}", text.Truncate(g, 80))
		case len(g) > maxGlob || text.GlobChoices(g, maxExpansions) > maxExpansions ||
			!doublestar.ValidatePattern(g):
			a.diagnose("the glob %q is invalid or too complex", text.Truncate(g, 80))
		default:
			globs = append(globs, g)
		}
	}
	return globs, given
}

// isExtended reports whether a glob has a part such as @(a|b), which only some tools understand.
func isExtended(glob string) bool {
	for i := 1; i < len(glob); i++ {
		if glob[i] == '(' && strings.IndexByte("?*+@!", glob[i-1]) >= 0 &&
			strings.Contains(glob[i:], ")") {
			return true
		}
	}
	return false
}

// splitGlobs splits s at commas outside braces and quotes.
func splitGlobs(s string) []string {
	var list []string
	depth, from := 0, 0
	var quote rune
	for i, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case (r == '"' || r == '\'') && strings.TrimSpace(s[from:i]) == "" &&
			strings.ContainsRune(s[i+1:], r):
			quote = r
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth <= 0:
			list = append(list, s[from:i])
			from = i + 1
		}
	}
	return append(list, s[from:])
}

// appliesTo reports whether the globs match the file at rel, slash-separated from the root.
func (a Artifact) appliesTo(rel string) bool {
	if a.dir != "." {
		rel = strings.TrimPrefix(rel, a.dir+"/")
	}
	for _, g := range a.Applies.Globs {
		name := rel
		if !strings.Contains(g, "/") && !a.row.anchored {
			name = path.Base(rel)
		}
		if ok, _ := doublestar.Match(g, name); ok {
			return true
		}
	}
	return false
}
