package explore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
)

// skills answers /skills.
func (t *turn) skills(context.Context, prompt) error {
	return t.listFound(discovery.Skill, "skill", "skills")
}

// foundCommands answers /commands.
func (t *turn) foundCommands(context.Context, prompt) error {
	return t.listFound(discovery.Command, "command", "commands")
}

// listFound shows all artifacts of a kind, by root: what counts, and what does not with the reason (A25).
func (t *turn) listFound(kind discovery.Kind, noun, nouns string) error {
	all := t.host.Catalog().Of(kind)
	called := t.slashNames()
	for _, r := range t.roots {
		var lines []string
		for _, a := range all {
			if a.Root.Index == r.Index {
				lines = append(lines, describeFound(r, a, called[a.Path])...)
			}
		}
		if err := t.rootGroup(r, lines); err != nil {
			return err
		}
	}
	said := tallyFound(all, noun, nouns)
	if offered, _ := t.host.Catalog().SlashCommands(reserved()...); len(offered) > t.options.MaxCommands {
		said += fmt.Sprintf(" Of %d skills and commands the first %d are announced; the others can be typed too.", len(offered), t.options.MaxCommands)
	}
	return t.write(said + "\n")
}

// slashNames says of skills and commands by which slash command they are called, by path.
func (t *turn) slashNames() map[string]string {
	called := make(map[string]string)
	offered, taken := t.host.Catalog().SlashCommands(reserved()...)
	for _, c := range offered {
		called[c.Artifact.Path] = "called by /" + c.Name
	}
	for _, c := range taken {
		called[c.Artifact.Path] = "not a slash command: /" + c.Name + " is something else"
	}
	return called
}

// rootGroup writes what a root holds, and which bounds cut the look at it.
func (t *turn) rootGroup(r root, lines []string) error {
	for _, c := range t.host.Catalog().Cuts() {
		if c.Root.Index == r.Index {
			lines = append(lines, "cut: "+printable(c.String()))
		}
	}
	heading := fmt.Sprintf("**%s** (root %d)", code(r.label), r.Index)
	if len(lines) == 0 {
		return t.write(heading + ": none\n\n")
	}
	if err := t.write(heading + "\n\n"); err != nil {
		return err
	}
	return t.quote(strings.Join(lines, "\n") + "\n")
}

// describeFound is a line with what an artifact is, one that says where it is, and one for each rule that it breaks.
// note is said behind the place.
func describeFound(r root, a discovery.Artifact, note string) []string {
	line := printable(a.Name)
	if a.State == discovery.Active {
		line = labelledText(a.Name, a.Description)
	} else {
		line += ": " + strings.ReplaceAll(string(a.State), "_", " ") + ", " + printable(a.Reason)
	}
	where := "  " + r.place(a.Path)
	if note != "" {
		where += ", " + printable(note)
	}
	lines := []string{line, where}
	for _, d := range a.Diagnostics {
		lines = append(lines, "  "+printable(d.String()))
	}
	return lines
}

// place is a path as answers write it: from the root's label on if it lies below the root.
func (r root) place(path string) string {
	rel, err := filepath.Rel(r.Dir.String(), path)
	if err != nil || !filepath.IsLocal(rel) {
		return printable(path)
	}
	return r.show(filepath.ToSlash(rel))
}

// tallyFound counts the states.
func tallyFound(list []discovery.Artifact, noun, nouns string) string {
	said := count(len(list), noun, nouns)
	for _, state := range []discovery.State{discovery.Active, discovery.Shadowed, discovery.Invalid, discovery.TooLarge} {
		n := 0
		for _, a := range list {
			if a.State == state {
				n++
			}
		}
		if n > 0 && n < len(list) || n > 0 && state != discovery.Active {
			said += fmt.Sprintf(", %d %s", n, strings.ReplaceAll(string(state), "_", " "))
		}
	}
	return said + "."
}
