package acp

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/worktree"
)

// Permissions are the user's rules about what backends may do without asking. A rule is a text such
// as "read", "edit docs/**", "run go test ...", "tool SERVER.TOOL" or "fetch HOST";
// docs/permissions.md describes them all.
type Permissions struct {
	Allow []string // what is not asked about
	Ask   []string // what is asked about although it is allowed
	Deny  []string // what is refused
	Only  bool     // no other rules hold, such as remembered answers of the user
}

// origins returns the folders from which worktrees were made.
func (a *adapter) origins() worktree.Origins {
	origins, err := a.options.Worktrees.registry().Origins()
	if err != nil {
		a.log.Warn("rules about permissions may not hold in some worktrees", "error", err)
	}
	return origins
}

// whyUnruled says what rules are worth for an agent that does not ask.
func whyUnruled(b backend.Info) string {
	asks := " asks for no permission: your rules about permissions do not hold for it."
	if !b.NeverAsks {
		asks = " changes files and runs commands without asking: your rules about permissions do " +
			"not hold for that. It asks " + b.AsksLittle + "."
	}
	if b.ServerSandbox.Mode != backend.SandboxOff {
		return text.Name(b.Profile) + asks + " Its sandbox restricts it."
	}
	return text.Name(b.Profile) + asks +
		" Use the sandbox, `--sandbox write`, if it should not do everything."
}
