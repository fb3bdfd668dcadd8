package model

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/commandline"
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ruleFor returns the consent that allows a command, and all commands with the same first words, in
// its root, and the variables that the command needs in its environment. ok is false if there can
// be no such consent.
func (c *call) ruleFor(cmd shellCommand) (rule consent.Consent, env []string, ok bool) {
	if !c.turn.backend.consents.Remembers() {
		return consent.Consent{}, nil, false
	}
	ws := c.turn.host.Workspace()
	understood, err := commandline.Understand(ws, cmd.dir, cmd.line)
	if err != nil {
		return consent.Consent{}, nil, false
	}
	info, err := ws.Stat(cmd.dir)
	if err != nil {
		return consent.Consent{}, nil, false
	}
	rule = consent.ForCommands(info.Ref().Root().Real, understood.Rule)
	return rule, understood.Env, true
}

// askRule asks whether to always allow commands like this one, in addition to this command itself.
func (c *call) askRule(ctx context.Context, shown backend.ToolCall, rule consent.Consent) error {
	label := "Always allow " + text.Code(commandline.Show(rule.Prefix)) + " in this folder"
	if also := commandline.Describe(rule.Prefix); also != "" {
		shown.Content = append(shown.Content, sdk.ToolContent(sdk.TextBlock(also)))
	}
	always, err := c.askUser(ctx, shown, label)
	if err == nil && always {
		err = c.turn.backend.consents.Allow(rule)
	}
	return err
}
