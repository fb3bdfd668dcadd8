package model

import (
	"bytes"
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

// compactCommand is the name of the slash command of this package.
const compactCommand = "compact"

// reserved are the names that skills and commands of the roots cannot have.
var reserved = []string{backend.RootsCommand, compactCommand}

const (
	// maxCommands is how many skills and commands of the roots are announced.
	maxCommands = 500
	// maxDescription bounds a description of a folder in a list, in characters.
	maxDescription = 300
)

// announceCommands sends the list of slash commands, unless it is the one that was sent last.
func (s *session) announceCommands(ctx context.Context, to backend.Updates) error {
	commands := []sdk.AvailableCommand{slashCommand(compactCommand, "Replace the conversation by a summary, to make room for more", "[WHAT TO KEEP]")}
	offered, _ := s.host.Catalog().SlashCommands(reserved...)
	labels := s.host.Workspace().Labels()
	for _, c := range offered[:min(len(offered), maxCommands)] {
		kind, hint := "Command", "[ARGUMENTS]"
		if c.Artifact.Kind == discovery.Skill {
			kind = "Skill"
		}
		if given := text.Line(c.Hint, maxDescription); given != "" {
			hint = text.Printable(given)
		}
		description := kind + " of " + text.Printable(labels[c.Artifact.Root.Index])
		if given := text.Line(c.Description, maxDescription); given != "" {
			description += ": " + text.Printable(given)
		}
		commands = append(commands, slashCommand(c.Name, description, hint))
	}
	update := backend.NewUpdate(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: commands}})
	if bytes.Equal(update.Raw, s.announced.Raw) {
		return nil
	}
	if err := to.Update(ctx, update); err != nil {
		return err
	}
	s.announced = update
	return nil
}

func slashCommand(name, description, hint string) sdk.AvailableCommand {
	return sdk.AvailableCommand{
		Name: name, Description: description,
		Input: &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: hint}},
	}
}
