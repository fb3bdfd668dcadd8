package main

import (
	"context"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// asked answers an agent that asks for permission, and shows the question. Nobody is there who could say yes, but
// --yes has said it beforehand.
type asked struct {
	show *printer // nil shows nothing
	yes  bool
}

// permission allows once with --yes, and refuses without.
func (a asked) permission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	kind, said := sdk.PermissionOptionKindRejectOnce, "refused; --yes allows what is asked for"
	if a.yes {
		kind, said = sdk.PermissionOptionKindAllowOnce, "allowed once"
	}
	outcome, found := sdk.NewRequestPermissionOutcomeCancelled(), false
	for _, option := range r.Options {
		if option.Kind == kind {
			outcome, found = sdk.NewRequestPermissionOutcomeSelected(option.OptionId), true
			break
		}
	}
	if !found {
		said = "cancelled: the agent offers no answer that is for once"
	}
	if a.show != nil {
		a.show.question(r.ToolCall, said)
	}
	return sdk.RequestPermissionResponse{Outcome: outcome}, nil
}

// question shows what the agent asks permission for, and what it was answered.
func (p *printer) question(call sdk.ToolCallUpdate, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	title := "something without a title"
	if call.Title != nil {
		title = *call.Title
	}
	p.note("? %s", printable(title))
	for _, c := range call.Content {
		if c.Content == nil || c.Content.Content.Text == nil {
			continue
		}
		for line := range strings.Lines(c.Content.Content.Text.Text) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				p.note("  %s", printable(line))
			}
		}
	}
	p.note("  (%s)", answer)
}
