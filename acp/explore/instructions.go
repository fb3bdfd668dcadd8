package explore

import (
	"cmp"
	"context"
	"slices"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// instructions answers /instructions.
func (t *commandTurn) instructions(ctx context.Context, p prompt) error {
	catalog := t.host.Catalog()
	list, found := catalog.Of(discovery.Instruction), catalog.Instructions(nil)
	note := ""
	if p.text != "" {
		further, err := catalog.For(ctx, p.text)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return t.Refuse("Cannot find the instructions: " + text.Plain(err.Error()) + ".\n")
		}
		more := catalog.Assemble(further)
		list = append(list, further...)
		found.Sources = append(found.Sources, more.Sources...)
		note = t.describeFurther(p.text, more.Sources) + "\n\n"
	}
	shown := cmp.Or(text.Plain(found.String()), "The folders contain no instructions.\n")
	t.Write(shown + "\n" + note)
	return t.listUnusedInstructions(list)
}

// describeFurther returns a note on which of the shown instructions apply to a path but not to a
// whole root.
func (t *commandTurn) describeFurther(path string, sources []discovery.Source) string {
	intro := "In addition to those of whole folders, these apply to " +
		text.Code(text.Truncate(path, 200)) + ": "
	if len(sources) == 0 {
		intro += "none."
		if candidate := tools.Elsewhere(t.host.Workspace(), path); candidate != "" {
			return intro + " Did you mean " + text.Code("/instructions "+candidate) + "?"
		}
		return intro
	}
	return intro + text.JoinFunc(sources, ", ", func(s discovery.Source) string {
		return text.Code(t.roots[s.Root.Index].ShowPath(s.Path))
	}) + "."
}

// listUnusedInstructions lists the instructions that are not active or break a rule.
func (t *commandTurn) listUnusedInstructions(list []discovery.Artifact) error {
	seen := make(map[string]bool)
	list = slices.DeleteFunc(list, func(a discovery.Artifact) bool {
		again := seen[a.Path]
		seen[a.Path] = true
		return again || a.State == discovery.Active && len(a.Diagnostics) == 0
	})
	for _, r := range t.roots {
		lines := r.LimitsReached(t.host.Catalog())
		for _, a := range slices.Backward(list) {
			if a.Root.Index == r.Index {
				lines = append(r.Describe(a, ""), lines...)
			}
		}
		if len(lines) == 0 {
			continue
		}
		t.Write("Files that are not used, or that break a rule: ")
		t.WriteGroup(r, lines)
	}
	return nil
}
