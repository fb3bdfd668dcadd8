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
	switch {
	case verb == "":
		return t.showPermissions()
	case verb == "revoke" && id != "":
		return t.revokePermission(c.Name, id)
	}
	return t.Write(fmt.Sprintf("Type `/%s` to see what may be done in this session without "+
		"asking you, or `/%[1]s revoke ID` to take back what you allowed.\n", c.Name))
}

// showPermissions shows the rules, each with where it comes from.
func (t *turn) showPermissions() error {
	permits := t.session.Permits()
	rules, err := permits.Rules(t.session.Workspace())
	if err != nil {
		return err
	}
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
	case permits.Configured != nil:
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

// revokePermission revokes one of the session's remembered rules. command is what the user typed.
func (t *turn) revokePermission(command, id string) error {
	permits := t.session.Permits()
	rules, err := permits.Rules(t.session.Workspace())
	if err != nil {
		return err
	}
	for _, r := range rules.Allow {
		c := r.Given
		if !strings.HasPrefix(string(c.ID), id) || len(id) < len(c.ID.Short()) {
			continue
		}
		if err := permits.Consents.Forget(c.ID); err != nil {
			return err
		}
		return t.Write("Revoked: " + text.Code(c.Rule) + " is asked for again.\n")
	}
	return t.Write("No rule of this session has this ID. `/" + command + "` shows the IDs; rules " +
		"of your configuration are changed there.\n")
}
