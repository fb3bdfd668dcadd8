package model

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// compactCommand is the name of the slash command of this package.
const compactCommand = "compact"

// maxCommands is how many skills and commands of the roots are announced.
const maxCommands = 500

// announceCommands sends the list of slash commands, unless it is the one that was sent last.
func (s *session) announceCommands(ctx context.Context, to backend.Updates) error {
	compact := backend.NewCommand(compactCommand, "Replace the conversation by a summary, to make room for more", "[WHAT TO KEEP]")
	return s.announced.Announce(ctx, s.host, to, []sdk.AvailableCommand{compact}, maxCommands)
}
