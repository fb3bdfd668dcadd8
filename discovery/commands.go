package discovery

import (
	"path"
	"strings"
	"unicode"
)

// readCommand reads a command or prompt file. base is the directory that the convention names; directories below it are part
// of the name.
func readCommand(a *Artifact, content, base string, l limits) {
	name := a.rel
	if base != "." {
		name = strings.TrimPrefix(name, base+"/")
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".prompt")
	a.Name = strings.ReplaceAll(name, "/", ":")
	f := parseFrontmatter(content, l.frontmatter)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	if f.yaml != "" && f.values["argument-hint"].text == "" {
		a.diagnose(RuleFrontmatterYAML, notYAML+f.yaml)
	}
	if typed := typeable(a.Name); typed != a.Name {
		a.diagnose(RuleCommandName, "the name cannot be typed after a slash; the command is called /"+typed)
	}
	a.Hint = f.hint()
	a.describe(f.values["description"].text)
	if a.Description == "" {
		a.Description = oneLine(firstLine(f.body), maxDescription)
	}
	if strings.TrimSpace(f.body) == "" {
		a.invalid("it is empty")
	}
}

// typeable returns name as it can be typed after a slash.
func typeable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '/' {
			return '-'
		}
		return r
	}, name)
}

// firstLine returns the first line that is not empty, without the marks of a heading.
func firstLine(content string) string {
	for line := range strings.SplitSeq(content, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "# \t")); line != "" && !strings.HasPrefix(line, "<!--") {
			return line
		}
	}
	return ""
}
