package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/text"
)

const (
	// maxDescription limits the part of a tool's description that the user is shown, in bytes.
	maxDescription = 2000
	// maxArguments limits the part of a call's arguments that is shown as text, in bytes.
	maxArguments = 8 << 10
)

// askPermission asks the user whether to make the call, unless a rule decides. It returns nil if
// they allow it.
func (c *mcpCall) askPermission(ctx context.Context) error {
	call := c.call
	call.Content = append(backend.TextContent(c.describeArguments()),
		backend.TextContent(c.claims())...)
	session := c.set.session.Load()
	action := permission.At(session.Workspace()).ToolCall(permission.ServerTool{
		Server: c.tool.Server, Name: c.tool.Remote, Config: c.tool.Identity,
		ReadOnly: c.tool.Hints.ReadOnly, Found: c.tool.Found,
	}, c.arguments)
	_, err := session.Ask(ctx, backend.Question{Call: call, Once: "Allow", Reject: "Reject",
		Action: action})
	if err != nil {
		return fmt.Errorf("%s was not used: %w", c.tool.Name, err)
	}
	return nil
}

// describeArguments returns the arguments of the call as a person should see them.
func (c *mcpCall) describeArguments() string {
	var indented bytes.Buffer
	if len(c.arguments) == 0 || json.Indent(&indented, c.arguments, "", "  ") != nil {
		return "It is called without arguments."
	}
	arguments := string(text.EscapeJSON(indented.Bytes()))
	if arguments == "{}" {
		return "It is called without arguments."
	}
	block := text.Block("json", text.Prefix(arguments, maxArguments))
	description := "It is called with:\n\n" + strings.TrimSuffix(block, "\n")
	if len(arguments) > maxArguments {
		description += fmt.Sprintf("\n\nThe arguments are %s long; only the beginning is shown.",
			text.Size(len(arguments)))
	}
	return description
}

// claims returns a description of the server's claims about the tool.
func (c *mcpCall) claims() string {
	server := text.Name(c.tool.Server)
	claim := fmt.Sprintf("MCP server %s does not say whether this tool makes changes.", server)
	if h := c.tool.Hints; !h.Unstated {
		claim = fmt.Sprintf("According to MCP server %s, this tool %s.", server, h.Claims())
	}
	if d := c.tool.Description; d != "" {
		claim += "\n\n" + quotation(text.Truncate(d, maxDescription))
	}
	return claim
}
