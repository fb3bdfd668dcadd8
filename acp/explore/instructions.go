package explore

import (
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/discovery"
)

// instructions answers /instructions.
func (t *turn) instructions(ctx context.Context, p prompt) error {
	catalog := t.host.Catalog()
	list, text := catalog.Of(discovery.Instruction), catalog.Instructions(discovery.EveryRoot)
	about := ""
	if p.text != "" {
		further, err := catalog.For(ctx, p.text)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return t.write(t.whyNoInstructions(p.text, err) + "\n")
		}
		more := catalog.Assemble(further)
		list = append(list, further...)
		text.Sources = append(text.Sources, more.Sources...)
		about = t.beyond(p.text, more.Sources) + "\n\n"
	}
	said := tame(text.String())
	if said == "" {
		said = "The roots hold no instructions.\n"
	}
	if err := t.write(said + "\n" + about); err != nil {
		return err
	}
	return t.leftOutInstructions(list)
}

// beyond says which of the shown instructions are there for the sake of a path.
func (t *turn) beyond(path string, sources []discovery.Source) string {
	said := "For " + code(clip(path, 200)) + ", beyond those of whole roots: "
	if len(sources) == 0 {
		said += "nothing."
		if _, err := t.workspace().Stat(path); err != nil {
			said += t.elsewhere("/instructions", path)
		}
		return said
	}
	for i, s := range sources {
		if i > 0 {
			said += ", "
		}
		said += code(t.roots[s.Root.Index].place(s.Path))
	}
	return said + "."
}

// whyNoInstructions says why nothing is said about a path.
func (t *turn) whyNoInstructions(path string, err error) string {
	name := code(clip(path, 200))
	if why := refusal(name, err); why != "" {
		return why
	}
	return "The instructions for " + name + " cannot be looked for: " + reason(err) + "."
}

// leftOutInstructions shows the instructions that do not count, or break a rule.
func (t *turn) leftOutInstructions(list []discovery.Artifact) error {
	seen := make(map[string]bool)
	list = slices.DeleteFunc(list, func(a discovery.Artifact) bool {
		again := seen[a.Path]
		seen[a.Path] = true
		return again || a.State == discovery.Active && len(a.Diagnostics) == 0
	})
	cuts := t.host.Catalog().Cuts()
	for _, r := range t.roots {
		var lines []string
		for _, a := range list {
			if a.Root.Index == r.Index {
				lines = append(lines, describeFound(r, a, "")...)
			}
		}
		if len(lines) == 0 && !slices.ContainsFunc(cuts, func(c discovery.Cut) bool { return c.Root.Index == r.Index }) {
			continue
		}
		if err := t.write("Files that do not count, or break a rule: "); err != nil {
			return err
		}
		if err := t.rootGroup(r, lines); err != nil {
			return err
		}
	}
	return nil
}
