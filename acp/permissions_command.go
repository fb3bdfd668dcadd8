package acp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/consent"
	"github.com/acp-agent/acp-agent/internal/policy"
	"github.com/acp-agent/acp-agent/internal/text"
)

// The adapter answers the slash command /permissions itself, whatever backend a session has: it
// shows the rules that hold in the session, and revokes one.

// answerPermissions answers /permissions.
func (o *ownTurn) answerPermissions(c prompts.Command) (backend.Raw, error) {
	verb, id := text.CutWord(strings.TrimSpace(c.Arguments))
	var err error
	switch {
	case verb == "":
		err = o.showPermissions()
	case verb == "revoke" && id != "":
		err = o.revokePermission(c.Name, id)
	default:
		err = o.say(fmt.Sprintf("Type `/%s` to see what may be done in this session without "+
			"asking you, or `/%[1]s revoke ID` to take back what you allowed.\n", c.Name))
	}
	if o.ctx.Err() != nil {
		return nil, context.Cause(o.ctx)
	}
	return backend.Stopped(sdk.StopReasonEndTurn), err
}

// showPermissions shows the rules, each with where it comes from.
func (o *ownTurn) showPermissions() error {
	permits := o.session.host.permits
	rules, remembered, err := permits.rules(o.session.workspace)
	if err != nil {
		return o.say("The rules cannot be read, so everything is asked: " + text.Plain(err.Error()) + "\n")
	}
	var b strings.Builder
	list := func(effect string, rules []policy.Rule) {
		for _, r := range rules {
			from := ", from your configuration"
			switch {
			case r.Session != "":
				from = ", until this session is closed"
			case r.Root != "":
				from = ", in " + text.Code(text.Printable(r.Root)) + idOf(r, remembered)
			}
			fmt.Fprintf(&b, "- %s %s%s\n", effect, text.Code(r.String()), from)
		}
	}
	list("deny", rules.Deny)
	list("ask", rules.Ask)
	list("allow", rules.Allow)
	if b.Len() == 0 {
		b.WriteString("No rules hold in this session: the agent asks as it does by itself.\n")
	}
	if o.agent.init.backend().NeverAsks {
		b.WriteString("\n" + neverAsks(o.agent.init.backend().Profile) + "\n")
	}
	return o.say(b.String())
}

// idOf returns the end of a line about a rule that the user gave for good.
func idOf(r policy.Rule, remembered []consent.Consent) string {
	for _, c := range remembered {
		if r.Is(c) {
			return fmt.Sprintf(", given %s as %s", c.Allowed.Format("2006-01-02"), text.Code(c.ID.Short()))
		}
	}
	return ""
}

// revokePermission revokes one of the session's remembered rules. command is what the user typed.
func (o *ownTurn) revokePermission(command, id string) error {
	permits := o.session.host.permits
	_, remembered, err := permits.rules(o.session.workspace)
	if err != nil {
		return o.say(text.Plain(err.Error()) + "\n")
	}
	for _, c := range remembered {
		if !strings.HasPrefix(string(c.ID), id) || len(id) < len(c.ID.Short()) {
			continue
		}
		if err := permits.consents.Forget(c.ID); err != nil {
			return o.say(text.Plain(err.Error()) + "\n")
		}
		return o.say("Revoked: " + text.Code(c.Rule) + " is asked for again.\n")
	}
	return o.say("No rule of this session has this ID. `/" + command + "` shows the IDs; rules of your " +
		"configuration are changed there.\n")
}

// neverAsks says what rules are worth for an agent that does not ask.
func neverAsks(agent string) string {
	return text.Name(agent) + " asks for no permission: your rules about permissions do not hold for it. " +
		"Use the sandbox, `--sandbox write`, if it should not do everything."
}
