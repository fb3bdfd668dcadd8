package found

import (
	"context"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Consents remembers which found servers the user always allows to start.
type Consents struct{ *consent.Store }

// NewConsents returns the consents kept in dir. If dir is "", nothing is remembered.
func NewConsents(dir string) *Consents { return &Consents{consent.NewStore(dir)} }

// Ask asks the user whether s may start, showing its whole configuration, unless they have always
// allowed it. They can only always allow a server that names nothing in the roots of w. Ask returns
// nil if they allow it, and remembers the answer "always".
// If the request was cancelled with the turn, the error is [backend.ErrCancelled].
func (c *Consents) Ask(
	ctx context.Context, user backend.Asker, w *workspace.Workspace, s *Server,
) error {
	if err := c.ask(ctx, user, w, s); err != nil {
		return err
	}
	s.hold()
	return nil
}

func (c *Consents) ask(
	ctx context.Context, user backend.Asker, w *workspace.Workspace, s *Server,
) error {
	if err := s.findGaps(w); err != nil {
		return err
	}
	if len(s.gaps) == 0 {
		if known, err := c.allowed(*s); err != nil || known {
			return err
		}
	}
	question := backend.Question{
		Call: backend.NewToolCall("mcp", sdk.ToolKindExecute, "Start MCP server "+
			text.QuotedName(s.Config.Name)+", found in "+text.Printable(s.File), s.describe()),
		Once: "Start it for this session", Reject: "Do not start it",
	}
	if len(s.gaps) == 0 {
		question.Always = "Always start it, unless its configuration changes"
	}
	answer, err := user.Ask(ctx, question)
	if err != nil {
		return fmt.Errorf("MCP server %s was not used: %w", text.Name(s.Config.Name), err)
	}
	if answer.Always {
		return c.allow(*s)
	}
	return nil
}

// allowed reports whether the user always allows s.
func (c *Consents) allowed(s Server) (bool, error) {
	known, err := c.Has(s.ID())
	if err != nil {
		return false, fmt.Errorf("cannot look up whether MCP server %s is allowed: %w",
			text.Name(s.Config.Name), err)
	}
	return known, nil
}

// allow remembers that the user always allows s.
func (c *Consents) allow(s Server) error {
	one := consent.Consent{ID: s.ID(), Server: s.Config.Name, Root: s.Root, File: s.File}
	if s.Config.Transport == mcp.Stdio {
		one.Command = s.Config.Command
	} else {
		one.Origin = origin(s.Config.URL) // the rest may hold secrets
	}
	if err := c.Store.Allow(one); err != nil {
		return fmt.Errorf("cannot remember that MCP server %s is allowed: %w",
			text.Name(s.Config.Name), err)
	}
	return nil
}
