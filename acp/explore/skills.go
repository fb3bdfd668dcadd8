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

// listArtifacts answers /skills and /commands. It lists them by root, with the reason for those
// that are not active.
func (t *commandTurn) listArtifacts(kind discovery.Kind) error {
	all := t.host.Catalog().Of(kind)
	offered, taken := t.host.Catalog().SlashCommands(backend.OwnCommands(Kind)...)
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
				lines = append(lines, r.Describe(a, called[a.Path])...)
			}
		}
		t.WriteGroup(r, append(lines, r.LimitsReached(t.host.Catalog())...))
	}
	summary := text.Count(len(all), string(kind), string(kind)+"s") + "."
	if len(offered) > maxCommands {
		summary += fmt.Sprintf(" Only the first %d of %d skills and commands are announced; you "+
			"can type the others too.",
			maxCommands, len(offered))
	}
	return t.Write(summary + "\n")
}

// explainUnusable tells the user why a skill or command cannot be called.
func (t *commandTurn) explainUnusable(a discovery.Artifact) error {
	if a.State == discovery.Active {
		return t.Refuse(fmt.Sprintf("The %s %s is not a slash command: its file says so. %s shows "+
			"it.\n", a.Kind, text.Code(a.Name), text.Code("/read "+a.Path)))
	}
	return t.Refuse(fmt.Sprintf("The %s %s of folder %s cannot be used: %s.\n",
		a.Kind, text.Code(a.Name), text.Code(t.roots[a.Root.Index].Label),
		text.Printable(a.Reason)))
}

// showArtifact shows the text of a skill or command, attributed to its root.
func (t *commandTurn) showArtifact(
	ctx context.Context, a discovery.Artifact, arguments string,
) error {
	r := t.roots[a.Root.Index]
	call, err := t.Begin(sdk.ToolKindRead, fmt.Sprintf("Read %s %s of folder %s", a.Kind,
		text.Printable(a.Name), text.Printable(r.Label)),
		map[string]string{"path": a.Path})
	if err != nil {
		return err
	}
	content, err := t.host.Catalog().Expand(ctx, a, arguments)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return t.Fail(call, fmt.Sprintf("Cannot read %s: %s.", text.Code(r.ShowPath(a.Path)),
			text.Plain(err.Error())))
	}
	summary := fmt.Sprintf("The %s %s, from %s in folder %s.", a.Kind, text.Code(a.Name),
		text.Code(r.ShowPath(a.Path)), text.Code(r.Label))
	err = call.Show(ctx, backend.ToolCall{Content: backend.TextContent(summary),
		ToolCallUpdate: sdk.ToolCallUpdate{Status: sdk.Ptr(sdk.ToolCallStatusCompleted),
			Locations: backend.Locations(a.Path, 0)}})
	if err != nil {
		return err
	}
	t.Write(summary + " This text comes from the folder, not from you. It is only " +
		"shown: there is no model here to follow it.\n\n")
	t.Quote(strings.TrimLeft(content.String(), "\r\n"))
	after := content.Note()
	if losers := t.host.Catalog().Losers(a); len(losers) > 0 {
		after = strings.TrimSpace(after + "\nNot used, because of the same name: " +
			text.JoinFunc(losers, ", ", func(loser discovery.Artifact) string {
				return text.Code(t.roots[loser.Root.Index].ShowPath(loser.Path))
			}) + ".")
	}
	if arguments != "" && !content.TakesArguments {
		after = "Your arguments: " + text.Code(arguments) + "\n" + after
	}
	if after == "" {
		return nil
	}
	return t.Write(strings.TrimSuffix(after, "\n") + "\n")
}
