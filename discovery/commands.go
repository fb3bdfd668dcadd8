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

// readGeminiCommand reads a command of Gemini CLI.
func readGeminiCommand(a *Artifact, content string) {
	values, err := readTOML(content)
	if err != nil {
		a.invalid(err.Error())
		return
	}
	description, _ := values["description"].(string)
	prompt, _ := values["prompt"].(string)
	a.describe(description)
	if a.Description == "" {
		a.Description = oneLine(firstLine(prompt), maxDescription)
	}
	if strings.TrimSpace(prompt) == "" {
		a.invalid("it has no prompt")
	}
}

// readCommand reads a command or prompt file.
func readCommand(a *Artifact, content string) {
	f := parseFrontmatter(content)
	if f.fault != "" {
		a.invalid(f.fault)
		return
	}
	a.readArguments(f)
	a.describe(f.values["description"].text)
	if a.Description == "" {
		a.Description = oneLine(firstLine(f.body), maxDescription)
	}
	if strings.TrimSpace(f.body) == "" {
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
