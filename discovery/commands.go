package discovery

import (
	"path"
	"strings"
	"unicode"
)

// nameCommand sets the name of a command or prompt. base is the directory that the convention
// names; directories below it are part of the name.
func (a *Artifact) nameCommand(base string) {
	name := a.rel
	if base != "." {
		name = strings.TrimPrefix(name, base+"/")
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".prompt")
	a.Name = strings.ReplaceAll(name, "/", ":")
	if typed := typeable(a.Name); typed != a.Name {
		a.diagnose("the name cannot be typed after a slash; the command is called /%s", typed)
	}
}

// isTOML reports whether a command is that of Gemini CLI.
func (a *Artifact) isTOML() bool { return path.Ext(a.rel) == ".toml" }

// frontmatter returns the frontmatter and the body of a file. In a command of Gemini CLI these are
// its description and its prompt.
func (a *Artifact) frontmatter(content string) frontmatter {
	if !a.isTOML() {
		return parseFrontmatter(content)
	}
	values, err := readTOML(content)
	if err != nil {
		return frontmatter{fault: err.Error()}
	}
	description, _ := values["description"].(string)
	prompt, _ := values["prompt"].(string)
	return frontmatter{values: map[string]value{"description": {text: description}}, body: prompt}
}

// readCommand reads a command or prompt file.
func readCommand(a *Artifact, content string) {
	f := a.frontmatter(content)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	a.readArguments(f)
	a.describe(f.values["description"].text)
	if a.Description == "" {
		a.Description = oneLine(firstLine(f.body), maxDescription)
	}
	switch {
	case strings.TrimSpace(f.body) != "":
	case a.isTOML():
		a.invalid("it has no prompt")
	default:
		a.invalid("it is empty")
	}
}

// typeable returns name in a form that can be typed after a slash.
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
		line = strings.TrimSpace(strings.TrimLeft(line, "# \t"))
		if line != "" && !strings.HasPrefix(line, "<!--") {
			return line
		}
	}
	return ""
}
