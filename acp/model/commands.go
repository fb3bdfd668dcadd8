package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/text"
)

// slashCommand is a slash command of this package.
type slashCommand struct {
	sdk.AvailableCommand
	run func(t *modelTurn, ctx context.Context, arguments string) (backend.Raw, error)
}

// ownCommands returns the slash commands of this package in the order in which they are announced.
func ownCommands() []slashCommand {
	command := backend.NewCommand
	return []slashCommand{
		{command("compact", "Replace the conversation with a summary, to make room for more",
			"[WHAT TO KEEP]"), (*modelTurn).compact},
		{command("undo", "Forget your last prompt and the answer; files are not changed", ""),
			(*modelTurn).undo},
		{command("model", "Show the models, or choose the one that answers", "[NAME]"),
			(*modelTurn).chooseModel},
		{command("help", "Show this list", ""), (*modelTurn).help},
	}
}

// isBuiltin reports whether a slash command is not for the model: the adapter or this package
// answers it.
func isBuiltin(slash prompts.Command) bool {
	return slices.Contains(backend.OwnCommands(Kind), slash.Name)
}

// maxCommands is how many skills and commands of the roots are announced.
const maxCommands = 500

// announceCommands sends the list of slash commands if it has changed since it was last sent.
func (s *modelSession) announceCommands(ctx context.Context, to backend.Updates) error {
	var own []sdk.AvailableCommand
	for _, c := range ownCommands() {
		own = append(own, c.AvailableCommand)
	}
	return s.announced.Announce(ctx, s.host, to, own, maxCommands)
}

// help answers /help.
func (t *modelTurn) help(ctx context.Context, _ string) (backend.Raw, error) {
	var b strings.Builder
	b.WriteString("Type what you want the model to do, or one of these commands:\n\n")
	shown := ownCommands()
	for _, name := range []string{
		backend.RootsCommand, backend.MCPCommand, backend.PermissionsCommand,
	} {
		shown = append(shown, slashCommand{AvailableCommand: backend.AdapterCommand(name)})
	}
	for _, c := range shown {
		usage := "/" + c.Name
		if c.Input != nil {
			usage += " " + c.Input.Unstructured.Hint
		}
		fmt.Fprintf(&b, "- %s: %s\n", text.Code(usage), c.Description)
	}
	var found []string
	offered, _ := t.host.Catalog().SlashCommands(backend.OwnCommands(Kind)...)
	for _, c := range offered[:min(len(offered), maxCommands)] {
		found = append(found, text.Code("/"+text.Printable(c.Name)))
	}
	for _, server := range t.host.Tools().Servers() {
		for _, p := range server.Prompts[:min(len(server.Prompts), maxCommands)] {
			found = append(found, text.Code("/"+text.Printable(p.Name)))
		}
	}
	if len(found) > 0 {
		b.WriteString("\nSkills and commands of the folders and prompts of MCP servers: " +
			strings.Join(found, ", ") + "\n")
	}
	return backend.Stopped(sdk.StopReasonEndTurn), t.note(ctx, b.String())
}

// chooseModel answers /model: it chooses the model with this ID for the session. Without an ID it
// shows all.
func (t *modelTurn) chooseModel(ctx context.Context, id string) (backend.Raw, error) {
	stopped := backend.Stopped(sdk.StopReasonEndTurn)
	var said strings.Builder
	e := t.backend.endpoint(id)
	switch {
	case e != nil:
		chosen := func(set *settings) { set.Model = id }
		if _, err := t.change(ctx, chosen, t.optionsUpdate); err != nil {
			return nil, err
		}
		return stopped, t.note(ctx, "The model "+e.code()+" answers from now on.")
	case id != "":
		fmt.Fprintf(&said, "There is no model %s.\n\n", text.Code(text.Line(id, 100)))
		stopped = backend.FailedTurn()
	}
	_, now := t.current()
	said.WriteString("The models of this session:\n\n")
	for _, e := range t.backend.endpoints {
		fmt.Fprintf(&said, "- %s", e.code())
		if m := e.given; m.Name != m.ID {
			fmt.Fprintf(&said, ", called %s by its server", text.Code(m.Name))
		}
		if e == now {
			said.WriteString(", which answers now")
		}
		said.WriteString("\n")
	}
	if len(t.backend.endpoints) > 1 {
		said.WriteString("\n`/model NAME` chooses another one.\n")
	}
	return stopped, t.note(ctx, said.String())
}
