package commands

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/acp/prompts"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
)

// answerPermissions answers /permissions: it shows the rules that hold in the session, or revokes
// one.
func (t *turn) answerPermissions(c prompts.Command) error {
	verb, id := text.CutWord(strings.TrimSpace(c.Arguments))
	rules, err := t.session.Permits().Rules()
	switch {
	case err != nil:
		return err
	case verb == "":
		return t.showRules(rules)
	case verb == "revoke" && id != "":
		return t.revokeRule(rules.Allow, c.Name, id)
	}
	return t.Write(fmt.Sprintf("Type `/%s` to see what may be done in this session without "+
		"asking you, or `/%[1]s revoke ID` to take back what you allowed.\n", c.Name))
}

// showRules shows the rules, each with where it comes from.
func (t *turn) showRules(rules permission.Rules) error {
	var b strings.Builder
	list := func(effect string, rules []permission.Rule) {
		for _, r := range rules {
			from := ", from your configuration"
			switch {
			case r.Session != "" && r.Within != "":
				from = fmt.Sprintf(", in %s until this session is closed",
					text.Code(filepath.Join(r.Root, r.Within)))
			case r.Session != "":
				from = ", until this session is closed"
			case r.Root != "":
				in := filepath.Join(r.Given.Root.String(), r.Within)
				from = fmt.Sprintf(", in %s, given %s as %s", text.Code(in),
					r.Given.Allowed.Format("2006-01-02"), text.Code(r.Given.ID.Short()))
			}
			fmt.Fprintf(&b, "- %s %s%s\n", effect, text.Code(text.Line(r.String(), 1000)), from)
		}
	}
	list("deny", rules.Deny)
	list("ask", rules.Ask)
	list("allow", rules.Allow)
	switch {
	case b.Len() > 0:
	case t.session.Permits().Configured != nil:
		b.WriteString("No rules hold in this session yet: you are asked, and the answer " +
			"\"Always\" makes one.\n")
	default:
		b.WriteString("No rules hold in this session: the agent uses its own prompts. With " +
			"`\"permissions\": {}` in the configuration acp-agent offers to remember what you allow.\n")
	}
	if t.Unruled != "" {
		b.WriteString("\n" + t.Unruled + "\n")
	}
	return t.Write(b.String())
}

// revokeRule revokes a remembered one of the rules. command is what the user typed.
func (t *turn) revokeRule(rules []permission.Rule, command, id string) error {
	for _, r := range rules {
		c := r.Given
		if !strings.HasPrefix(string(c.ID), id) || len(id) < len(c.ID.Short()) {
			continue
		}
		if err := t.Consents.Forget(c.ID); err != nil {
			return err
		}
		return t.Write("Revoked: " + text.Code(c.Rule) + " is asked for again.\n")
	}
	return t.Write("No rule of this session has this ID. `/" + command + "` shows the IDs; rules " +
		"of your configuration are changed there.\n")
}
