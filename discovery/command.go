package discovery

import (
	"path"
	"strings"
	"unicode"
)

// readCommand reads a command or a prompt. base is the directory that the convention names: directories below it are
// part of the name.
func readCommand(a *Artifact, text, base string, o Options) {
	name := a.rel
	if base != "." {
		name = strings.TrimPrefix(name, base+"/")
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".prompt")
	a.Name = strings.ReplaceAll(name, "/", ":")
	f := parseFrontmatter(text, o.MaxFrontmatter)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	if f.yaml != "" && f.values["argument-hint"].text == "" {
		a.diagnose(RuleFrontmatterYAML, "the frontmatter is not YAML, it was read line by line: "+f.yaml)
	}
	if typed := typeable(a.Name); typed != a.Name {
		a.diagnose(RuleCommandName, "the name cannot be typed after a slash; it is called /"+typed)
	}
	a.Hint = f.hint()
	a.describe(f.values["description"].text)
	if a.Description == "" {
		a.Description = firstRunes(firstLine(f.body), maxDescription)
	}
	if strings.TrimSpace(f.body) == "" {
		a.invalid("it is empty: a command is the prompt that it stands for")
	}
}

// typeable is name as it can be typed after a slash.
func typeable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '/' {
			return '-'
		}
		return r
	}, name)
}

// firstLine is the first line that says something, without the marks of a heading.
func firstLine(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "# \t")); line != "" && !strings.HasPrefix(line, "<!--") {
			return oneLine(line)
		}
	}
	return ""
}
