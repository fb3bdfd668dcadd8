package found

import (
	"context"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/permission/consent"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Ask asks the user whether s may start, showing its whole configuration, unless known says that
// they always allow it. They can only always allow a server that names nothing in the roots of w.
// Ask returns the configuration to start if they allow it, and remembers the answer "always". If the
// request was cancelled with the turn, the error is [backend.ErrCancelled].
func (s Server) Ask(
	ctx context.Context, user backend.Client, known *consent.Store, w *workspace.Workspace,
) (start mcpclient.Config, err error) {
	gaps, err := gapsOf(s.Start, w)
	if err != nil {
		return start, err
	}
	always, allowed := "", false
	if len(gaps) == 0 {
		if allowed, err = known.Has(s.ID()); err != nil {
			return start, fmt.Errorf("cannot look up whether MCP server %s is allowed: %w",
				text.Name(s.Config.Name), err)
		}
		always = "Always start it, unless its configuration changes"
	}
	if allowed {
		return s.asAsked(gaps), nil
	}
	question := backend.Question{
		Call: backend.NewToolCall("mcp", sdk.ToolKindExecute, "Start MCP server "+
			text.QuotedName(s.Config.Name)+", found in "+text.Printable(s.File), s.describe(gaps)),
		Once: "Start it for this session", Always: always, Reject: "Do not start it",
	}
	answer, err := question.Ask(ctx, user)
	if err != nil {
		return start, fmt.Errorf("MCP server %s was not used: %w", text.Name(s.Config.Name), err)
	}
	if answer.Always {
		err = known.Allow(s.consent())
	}
	if err != nil {
		return start, fmt.Errorf("cannot remember that MCP server %s is allowed: %w",
			text.Name(s.Config.Name), err)
	}
	return s.asAsked(gaps), nil
}

// consent returns what is remembered if the user always allows s.
func (s Server) consent() consent.Consent {
	one := consent.Consent{ID: s.ID(), Server: s.Config.Name, Root: s.Root, File: s.File}
	if s.Config.Transport == mcp.Stdio {
		one.Command = s.Config.Command
	} else {
		one.Origin = origin(s.Config.URL) // the rest may hold secrets
	}
	return one
}
