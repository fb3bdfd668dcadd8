package process

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/text"
)

// ExplainDenial returns which setting would allow what the child says it was not permitted to do,
// as Markdown for the user, and the path that it would allow. They are "" if that is not due to the
// child's sandbox, as far as can be known. who is the child, and owner the section of the
// configuration file with its settings.
func (p *Process) ExplainDenial(message, who, owner string) (explanation, path string) {
	d, denied := p.sandbox.Denied(message)
	if !denied {
		return "", ""
	}
	does, setting := "change", text.Code("sandboxWrite")
	if d.Reading {
		does, setting = "read", text.Code("sandboxRead")+", or if it should change that to "+setting+","
	}
	return fmt.Sprintf("The sandbox does not let %s %s %s, which it reported. If you know that it needs "+
		"to, add %s to %s of %s in acp-agent's configuration file, and restart acp-agent. If it does "+
		"not exist, create it first.", who, does, text.Code(d.Path), text.Code(d.Grant), setting,
		owner), d.Grant
}
