package discovery

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/text"
)

// The keys of the Agent Skills specification, and those that Claude Code added and others support
// too.
var skillKeys = [...]string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools",
	"agent", "argument-hint", "arguments", "context", "disable-model-invocation",
	"disallowed-tools", "effort", "hooks", "model", "paths",
	"shell", "user-invocable", "version", "when_to_use",
}

// maxDescription is the longest description that the specification allows, in characters. Longer
// ones are truncated.
const maxDescription = 1024

// notYAML introduces a YAML error in a diagnostic.
const notYAML = "the frontmatter is not valid YAML and was read line by line: "

// readSkill reads a SKILL.md leniently by the Agent Skills specification.
func readSkill(a *Artifact, content string, l limits) {
	folder := filepath.Base(a.Root.Dir.String())
	if dir := path.Dir(a.rel); dir != "." {
		folder = path.Base(dir)
	}
	a.Name = folder
	f := parseFrontmatter(content, l.frontmatter)
	switch {
	case f.fault != "":
		a.invalid(f.fault)
		return
	case f.none:
		a.invalid("it has no frontmatter: a skill begins with its name and description " +
			"between two lines ---")
		return
	case f.yaml != "":
		a.diagnose(ruleFrontmatterYAML, notYAML+f.yaml)
	}
	a.readSkillName(f, folder)
	a.describe(f.values["description"].text)
	a.readArguments(f)
	a.Uncallable = f.values["user-invocable"].is("false")
	a.UserOnly = f.values["disable-model-invocation"].is("true")
	a.checkSkillKeys(f)
	if a.Description == "" {
		a.diagnose(ruleSkillDescription, "a skill needs a description that says when to use it")
		a.invalid("it has no description")
	}
}

func (a *Artifact) readSkillName(f frontmatter, folder string) {
	name := text.Prefix(strings.TrimSpace(f.values["name"].text), maxDescription)
	if name == "" {
		a.diagnose(ruleSkillName, "the skill has no name; the name of its folder is used")
		return
	}
	a.Name = name
	if n := utf8.RuneCountInString(name); n > 64 {
		a.diagnose(ruleSkillNameLength,
			fmt.Sprintf("the name has %d characters; at most 64 are allowed", n))
	}
	if !isSkillName(name) {
		a.diagnose(ruleSkillNameChars,
			fmt.Sprintf("the name %q must consist of a-z, 0-9 and single hyphens inside", name))
	}
	if name != folder {
		a.diagnose(ruleSkillNameFolder,
			fmt.Sprintf("the name %q differs from the name of the folder, %q", name, folder))
	}
}

// isSkillName reports whether name has only the characters that the specification allows.
func isSkillName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return name != "" && name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
}

// checkSkillKeys reports problems with the other keys.
func (a *Artifact) checkSkillKeys(f frontmatter) {
	if v, given := f.values["compatibility"]; given {
		if n := utf8.RuneCountInString(v.text); n == 0 || n > 500 {
			a.diagnose(ruleSkillCompat,
				fmt.Sprintf("compatibility has %d characters; 1 to 500 are allowed", n))
		}
	}
	for _, key := range []string{"name", "description", "license"} {
		if v, given := f.values[key]; given && !v.isScalar() {
			a.diagnose(ruleFrontmatterKey, key+" must be a text, not a list or a mapping")
		}
	}
	var unknown []string
	for key := range f.values {
		if !slices.Contains(skillKeys[:], key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		a.diagnose(ruleSkillKey, "keys that nothing defines: "+strings.Join(unknown, ", "))
	}
}

// describe sets the description.
func (a *Artifact) describe(description string) {
	a.Description = oneLine(description, math.MaxInt)
	if n := utf8.RuneCountInString(a.Description); n > maxDescription {
		a.diagnose(ruleDescription,
			fmt.Sprintf("the description has %d characters; the first %d are used", n,
				maxDescription))
		a.Description = oneLine(a.Description, maxDescription)
	}
}

// hint returns the argument-hint. It is often written as [name], which is a list in YAML.
func (f frontmatter) hint() string {
	v := f.values["argument-hint"]
	if !v.isScalar() {
		v.text = f.lines["argument-hint"].line
	}
	return oneLine(v.text, maxDescription)
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
