package explore

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

// listSkills answers /skills.
func (t *turn) listSkills(context.Context, prompt) error {
	return t.listArtifacts(discovery.Skill, "skill", "skills")
}

// listCommands answers /commands.
func (t *turn) listCommands(context.Context, prompt) error {
	return t.listArtifacts(discovery.Command, "command", "commands")
}

// listArtifacts lists all skills or commands by root, with the reason for those that are not
// active.
func (t *turn) listArtifacts(kind discovery.Kind, noun, plural string) error {
	all := t.host.Catalog().Of(kind)
	offered, taken := t.host.Catalog().SlashCommands(builtinNames()...)
	called := make(map[string]string)
	for _, c := range offered {
		called[c.Artifact.Path] = "called by /" + c.Name
	}
	for _, c := range taken {
		called[c.Artifact.Path] = "not a slash command: /" + c.Name + " is taken"
	}
	for _, a := range all {
		if a.State == discovery.Active && a.Uncallable {
			called[a.Path] = "not a slash command: its file says so"
		}
	}
	for _, r := range t.roots {
		var lines []string
		for _, a := range all {
			if a.Root.Index == r.Index {
				lines = append(lines, describeArtifact(r, a, called[a.Path])...)
			}
		}
		if err := t.writeGroup(r, append(lines, t.limitsReached(r)...)); err != nil {
			return err
		}
	}
	summary := countStates(all, noun, plural)
	if len(offered) > t.limits.commands {
		summary += fmt.Sprintf(" Only the first %d of %d skills and commands are announced; you "+
			"can type the others too.",
			t.limits.commands, len(offered))
	}
	return t.write(summary + "\n")
}

// writeGroup writes lines about one root.
func (t *turn) writeGroup(r root, lines []string) error {
	heading := fmt.Sprintf("**%s** (folder %d)", text.Code(r.label), r.Index)
	if len(lines) == 0 {
		return t.write(heading + ": none\n\n")
	}
	if err := t.write(heading + "\n\n"); err != nil {
		return err
	}
	return t.quote(strings.Join(lines, "\n") + "\n")
}

// limitsReached returns lines about the limits that ended the scan of a root.
func (t *turn) limitsReached(r root) []string {
	var lines []string
	for _, c := range t.host.Catalog().LimitsReached() {
		if c.Root.Index == r.Index {
			lines = append(lines, "incomplete: "+text.Printable(c.String()))
		}
	}
	return lines
}

// describeArtifact returns lines that say what an artifact is, where it is, and which rules it
// breaks. note follows the path.
func describeArtifact(r root, a discovery.Artifact, note string) []string {
	line := text.Attributed(a.Name, a.Description, maxDescription)
	if a.State != discovery.Active {
		line = text.Printable(a.Name) + ": " + stateName(a.State) + ", " + text.Printable(a.Reason)
	}
	where := "  " + r.showPath(a.Path)
	if note != "" {
		where += ", " + text.Printable(note)
	}
	lines := []string{line, where}
	for _, d := range a.Diagnostics {
		lines = append(lines, "  "+text.Printable(d.String()))
	}
	return lines
}

func stateName(s discovery.State) string { return strings.ReplaceAll(string(s), "_", " ") }

// countStates returns the number of artifacts in each state.
func countStates(list []discovery.Artifact, noun, plural string) string {
	summary := text.Count(len(list), noun, plural)
	for _, state := range []discovery.State{discovery.Active, discovery.Shadowed, discovery.Invalid,
		discovery.TooLarge} {
		n := 0
		for _, a := range list {
			if a.State == state {
				n++
			}
		}
		if n > 0 && (n < len(list) || state != discovery.Active) {
			summary += fmt.Sprintf(", %d %s", n, stateName(state))
		}
	}
	return summary + "."
}

// skill answers /skill.
func (t *turn) skill(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Give the name of a skill: " + text.Code("/skill NAME [ARGUMENTS]") + ". " +
			text.Code("/skills") + " lists them.\n")
	}
	a, arguments, ok := findNamed(t.host.Catalog().Of(discovery.Skill), p.text)
	switch {
	case !ok:
		return t.write("There is no skill " + text.Code(text.Truncate(p.text, 200)) + ". " +
			text.Code("/skills") + " lists them.\n")
	case a.State != discovery.Active:
		return t.explainUnusable(a)
	}
	return t.showArtifact(ctx, a, arguments)
}

// explainUnusable tells the user why a skill or command cannot be called.
func (t *turn) explainUnusable(a discovery.Artifact) error {
	if a.State == discovery.Active {
		return t.write(fmt.Sprintf("The %s %s is not a slash command: its file says so. %s shows "+
			"it.\n", a.Kind, text.Code(a.Name), text.Code("/skill "+a.Name)))
	}
	return t.write(fmt.Sprintf("The %s %s of folder %s cannot be used: %s.\n",
		a.Kind, text.Code(a.Name), text.Code(t.roots[a.Root.Index].label),
		text.Printable(a.Reason)))
}

// findNamed returns the artifact whose name s begins with, and the rest of s. It prefers longer
// names, and among artifacts with the same name the active one.
func findNamed(
	list []discovery.Artifact, s string,
) (found discovery.Artifact, rest string, ok bool) {
	for _, a := range list {
		after, named := strings.CutPrefix(s, a.Name)
		if a.Name == "" || !named || (after != "" && !strings.ContainsAny(after[:1], " \t\r\n")) {
			continue
		}
		better := a.Name == found.Name && found.State != discovery.Active &&
			a.State == discovery.Active
		if len(a.Name) > len(found.Name) || better {
			found, rest, ok = a, strings.TrimSpace(after), true
		}
	}
	return found, rest, ok
}

// showArtifact shows the text of a skill or command, attributed to its root.
func (t *turn) showArtifact(ctx context.Context, a discovery.Artifact, arguments string) error {
	r := t.roots[a.Root.Index]
	call, err := t.begin(sdk.ToolKindRead, fmt.Sprintf("Read %s %s of folder %s", a.Kind,
		text.Printable(a.Name), text.Printable(r.label)),
		map[string]string{"path": a.Path})
	if err != nil {
		return err
	}
	content, err := t.host.Catalog().Expand(ctx, a, arguments)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return call.fail(fmt.Sprintf("Cannot read %s: %s.", text.Code(r.showPath(a.Path)),
			reason(err)))
	}
	summary := fmt.Sprintf("The %s %s, from %s in folder %s.", a.Kind, text.Code(a.Name),
		text.Code(r.showPath(a.Path)), text.Code(r.label))
	if err := call.end(sdk.ToolCallStatusCompleted, summary,
		backend.Locations(a.Path, 0)); err != nil {
		return err
	}
	if err := t.write(summary + " This text comes from the folder, not from you. It is only " +
		"shown: there is no model here to follow it.\n\n"); err != nil {
		return err
	}
	if err := t.quote(strings.TrimLeft(content.String(), "\r\n")); err != nil {
		return err
	}
	after := content.Note()
	var losers []string
	for _, loser := range t.host.Catalog().Losers(a) {
		losers = append(losers, text.Code(t.roots[loser.Root.Index].showPath(loser.Path)))
	}
	if len(losers) > 0 {
		after = strings.TrimSpace(after + "\nNot used, because of the same name: " +
			strings.Join(losers, ", ") + ".")
	}
	if arguments != "" && !content.TakesArguments {
		after = "Your arguments: " + text.Code(arguments) + "\n" + after
	}
	if after == "" {
		return nil
	}
	return t.write(strings.TrimSuffix(after, "\n") + "\n")
}
