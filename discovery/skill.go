package discovery

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The keys of the Agent Skills specification.
var skillKeys = [...]string{"name", "description", "license", "compatibility", "metadata", "allowed-tools"}

// maxDescription is the most characters of a description, by the specification; longer ones are cut.
const maxDescription = 1024

// readSkill reads a SKILL.md by the Agent Skills specification, leniently.
func readSkill(a *Artifact, text string, o Options) {
	folder := a.folder()
	a.Name = folder
	if name := path.Base(a.rel); name != "SKILL.md" && strings.EqualFold(name, "SKILL.md") {
		a.diagnose(RuleFileName, "the file's name is written SKILL.md, not "+name)
	}
	f := parseFrontmatter(text, o.MaxFrontmatter)
	switch {
	case f.fault != "":
		a.invalid(f.fault)
		return
	case f.none:
		a.invalid("it has no frontmatter: a skill begins with its name and description between two lines ---")
		return
	case f.yaml != "":
		a.diagnose(RuleFrontmatterYAML, "the frontmatter is not YAML, it was read line by line: "+f.yaml)
	}
	a.skillName(f, folder)
	a.describe(f.values["description"].text)
	a.Hint = f.hint()
	a.Uncallable = f.values["user-invocable"].text == "false"
	a.skillRest(f)
	if a.Description == "" {
		a.diagnose(RuleSkillDescription, "a skill says in description when to use it")
		a.invalid("it has no description")
	}
}

// folder is the name of the directory that holds the file, as it was found.
func (a *Artifact) folder() string {
	if dir := path.Dir(a.rel); dir != "." {
		return path.Base(dir)
	}
	return filepath.Base(a.Root.Dir.String())
}

func (a *Artifact) skillName(f frontmatter, folder string) {
	name := firstRunes(strings.TrimSpace(f.values["name"].text), maxDescription)
	if name == "" {
		a.diagnose(RuleSkillName, "a skill says its name; its folder's is taken")
		return
	}
	a.Name = name
	if n := utf8.RuneCountInString(name); n > 64 {
		a.diagnose(RuleSkillNameLength, fmt.Sprintf("the name has %d characters; at most 64 are allowed", n))
	}
	if !isSkillName(name) {
		a.diagnose(RuleSkillNameChars, fmt.Sprintf("the name %q is not of a-z, 0-9 and single hyphens inside", name))
	}
	if name != folder {
		a.diagnose(RuleSkillNameFolder, fmt.Sprintf("the name %q is not that of the folder, %q", name, folder))
	}
}

// isSkillName reports whether name has only characters of the specification.
func isSkillName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return name != "" && name[0] != '-' && name[len(name)-1] != '-' && !strings.Contains(name, "--")
}

// skillRest checks what is only reported.
func (a *Artifact) skillRest(f frontmatter) {
	if v, given := f.values["compatibility"]; given {
		if n := utf8.RuneCountInString(v.text); n == 0 || n > 500 {
			a.diagnose(RuleSkillCompat, fmt.Sprintf("compatibility has %d characters; 1 to 500 are allowed", n))
		}
	}
	for _, key := range []string{"name", "description", "license", "allowed-tools"} {
		if v, given := f.values[key]; given && !v.isScalar() {
			a.diagnose(RuleFrontmatterKey, key+" is a text, not a list or a mapping")
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
		a.diagnose(RuleSkillKey, "the specification does not know "+strings.Join(unknown, ", "))
	}
}

// describe sets the description to text in one line.
func (a *Artifact) describe(text string) {
	a.Description = oneLine(text)
	if n := utf8.RuneCountInString(a.Description); n > maxDescription {
		a.diagnose(RuleDescription, fmt.Sprintf("the description has %d characters; %d are kept", n, maxDescription))
		a.Description = firstRunes(a.Description, maxDescription-1) + "…"
	}
}

// hint is the argument-hint. It is often written as [name], which YAML takes for a list.
func (f frontmatter) hint() string {
	v := f.values["argument-hint"]
	if !v.isScalar() {
		v.text = f.lines["argument-hint"].line
	}
	return firstRunes(oneLine(v.text), maxDescription)
}

// oneLine is text in one line, without characters that a screen would not show as themselves.
func oneLine(text string) string {
	if isOneLine(text) {
		return text
	}
	line := strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
}

// isOneLine reports whether text is certainly one line as it is: of visible ASCII with single blanks inside, as most are.
func isOneLine(text string) bool {
	blank := true
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || c == ' ' && blank {
			return false
		}
		blank = c == ' '
	}
	return !blank || text == ""
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
