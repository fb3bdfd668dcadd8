package model

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// announceCommands sends the list of slash commands, unless it is the one that was sent last.
func (s *session) announceCommands(ctx context.Context, to backend.Updates) error { return nil }

// compactCall reports whether the prompt is /compact, and returns what follows it.
func compactCall(params backend.Raw) (focus string, ok bool) { return "", false }
