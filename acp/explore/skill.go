package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
)

// skill answers /skill.
func (t *turn) skill(ctx context.Context, p prompt) error {
	if p.text == "" {
		return t.write("Say which skill: " + code("/skill NAME [ARGUMENTS]") + ". " + code("/skills") + " lists them.\n")
	}
	a, arguments, ok := findNamed(t.host.Catalog().Of(discovery.Skill), p.text)
	switch {
	case !ok:
		return t.write("There is no skill " + code(clip(p.text, 200)) + ". " + code("/skills") + " lists them.\n")
	case a.State != discovery.Active:
		return t.write(fmt.Sprintf("The skill %s of root %s cannot be used: %s.\n",
			code(a.Name), code(t.roots[a.Root.Index].label), printable(a.Reason)))
	}
	return t.showFound(ctx, a, arguments)
}

// findNamed is the artifact whose name a text begins with, and the rest of the text. A longer name goes first, and of
// one name the artifact that counts.
func findNamed(list []discovery.Artifact, text string) (found discovery.Artifact, rest string, ok bool) {
	for _, a := range list {
		after, named := strings.CutPrefix(text, a.Name)
		if a.Name == "" || !named || (after != "" && !strings.ContainsAny(after[:1], " \t\r\n")) {
			continue
		}
		longer := len(a.Name) > len(found.Name)
		counts := a.Name == found.Name && found.State != discovery.Active && a.State == discovery.Active
		if longer || counts {
			found, rest, ok = a, strings.TrimSpace(after), true
		}
	}
	return found, rest, ok
}

// showFound shows what a skill or a command says, as its root's word (A30). Nothing of it is done.
func (t *turn) showFound(ctx context.Context, a discovery.Artifact, arguments string) error {
	r := t.roots[a.Root.Index]
	call, err := t.begin(toolRead, fmt.Sprintf("Read %s %s of root %s", a.Kind, printable(a.Name), printable(r.label)),
		map[string]string{"path": a.Path})
	if err != nil {
		return err
	}
	text, err := t.host.Catalog().Text(ctx, a)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return call.fail(fmt.Sprintf("%s cannot be read: %s.", code(r.place(a.Path)), reason(err)))
	}
	var places []location
	if validPath(a.Path) {
		places = []location{{Path: a.Path}}
	}
	said := fmt.Sprintf("The %s %s, from %s in root %s.", a.Kind, code(a.Name), code(r.place(a.Path)), code(r.label))
	if err := call.end(toolCompleted, said, places); err != nil {
		return err
	}
	if err := t.write(said + " This is what the folder says, not you. It was only read: there is no model here to follow it.\n\n"); err != nil {
		return err
	}
	if err := t.quote(strings.TrimLeft(text, "\r\n")); err != nil || arguments == "" {
		return err
	}
	return t.write("Your arguments: " + code(arguments) + "\n")
}
