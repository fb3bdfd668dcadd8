package discovery

import (
	"cmp"
	"math"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

// maxDescription is the longest description that the specification allows, in characters. Longer
// ones are truncated.
const maxDescription = 1024

// readSkill reads a SKILL.md leniently by the Agent Skills specification.
func readSkill(a *Artifact, content string) {
	folder := filepath.Base(a.Root.Dir.String())
	if dir := path.Dir(a.rel); dir != "." {
		folder = path.Base(dir)
	}
	a.Name = folder
	f := parseFrontmatter(content)
	switch {
	case f.fault != "":
		a.invalid(f.fault)
		return
	case f.none:
		a.invalid("it has no frontmatter: a skill begins with its name and description " +
			"between two lines ---")
		return
	}
	// The name does not share the memory of the file.
	name := text.Prefix(strings.TrimSpace(f.values["name"].text), maxDescription)
	a.Name = cmp.Or(strings.Clone(name), folder)
	a.describe(f.values["description"].text)
	a.readArguments(f)
	a.Uncallable = f.values["user-invocable"].is("false")
	a.UserOnly = f.values["disable-model-invocation"].is("true")
	if a.Description == "" {
		a.invalid("it has no description")
	}
}

// describe sets the description.
func (a *Artifact) describe(description string) {
	a.Description = oneLine(description, math.MaxInt)
	if n := utf8.RuneCountInString(a.Description); n > maxDescription {
		a.diagnose("the description has %d characters; the first %d are used", n, maxDescription)
		a.Description = oneLine(a.Description, maxDescription)
	}
}

// oneLine returns s as one line of at most max characters, without characters that are not visible.
// The result does not share the memory of s, which may be a whole file.
func oneLine(s string, max int) string {
	return strings.Clone(text.Line(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return -1
	}, s), max))
}
