package process

import (
	"fmt"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ExplainDenial looks for an error in a child's message that its sandbox has probably caused. It
// returns a text in Markdown that tells the user which setting would permit the access, and the
// path that this setting would name. Both are "" if there is no such error. who names the child,
// and owner the section of the configuration file with its settings.
func ExplainDenial(
	p sandbox.Policy, message, who, owner string,
) (explanation, path string) {
	d, denied := p.Denied(message)
	if !denied {
		return "", ""
	}
	does, setting := "change", text.Code("sandboxWrite")
	if d.Reading {
		does, setting = "read", text.Code("sandboxRead")+" (or to "+setting+", to change it too)"
	}
	return fmt.Sprintf("The sandbox does not let %s %s %s, by its own report. If you know that it "+
		"must, add %s to %s of %s in acp-agent's configuration file, and restart acp-agent. If the path "+
		"does not exist, create it first.", who, does, text.Code(d.Path), text.Code(d.Grant), setting,
		owner), d.Grant
}
