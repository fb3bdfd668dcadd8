package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text"
)

// describeServer describes a server of the session. Names and texts that come from it are quoted.
func (m MCP) describeServer(s mcp.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server **%s** (%s): %s\n\n", text.Code(s.Name), s.Transport,
		m.describeServerState(s))
	if s.Prefix != s.Name {
		fmt.Fprintf(&b, "- its tools are called %s\n", text.Code(s.Prefix+".…"))
	}
	if s.Revision != "" {
		fmt.Fprintf(&b, "- product: %s\n- protocol: %s\n",
			text.Code(text.Truncate(s.Product, maxDescription)),
			text.Code(text.Truncate(s.Revision, maxDescription)))
	}
	switch {
	case s.SentRoots != nil:
		fmt.Fprintf(&b, "- received %s:\n", text.Count(len(s.SentRoots), "root", "roots"))
		for i, uri := range s.SentRoots {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, text.Code(uri))
		}
	case s.Revision == "":
	case !s.RootsDeclared:
		b.WriteString("- received no roots: it may not request them\n")
	default:
		b.WriteString("- received no roots: it has not requested them\n")
	}
	if s.Restarts > 0 {
		fmt.Fprintf(&b, "- restarted: %s\n", text.Count(s.Restarts, "time", "times"))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "- warning: %s\n", text.Printable(warning))
	}
	if s.Err != nil {
		fmt.Fprintf(&b, "- error: %s\n", text.Code(text.Truncate(s.Err.Error(), maxError)))
	}
	if instructions := text.Plain(s.Instructions); strings.TrimSpace(instructions) != "" {
		b.WriteString("- instructions of the server:\n\n" +
			text.Block("text", text.Truncate(instructions, maxInstructions)))
	}
	return b.String()
}

func (m MCP) describeServerState(s mcp.Status) string {
	switch {
	case s.State == mcp.Idle && m.PassedOn:
		return "passed on to the agent, which connects it; " + m.typed("tools") +
			" connects it a second time to show what it offers"
	case s.State == mcp.Idle:
		return "idle; it starts when it is first used, for example by " + m.typed("tools")
	case s.State == mcp.Waiting:
		return "waiting; it ended and will be restarted"
	case s.State == mcp.Failed:
		return "failed; it is tried again when it is next used"
	case s.Waiting != "":
		return string(s.State) + "; " + s.Waiting
	default:
		return string(s.State)
	}
}

// describeTool says what a tool is called, and what its server says about it.
func describeTool(tool mcp.Tool) []string {
	claim := "  according to its server it " + tool.Hints.Claims()
	if tool.Hints.Unstated {
		claim = "  its server does not say whether it makes changes"
	}
	title := text.Attributed("tool "+tool.Name, tool.Description, maxDescription)
	lines := []string{title, claim}
	if len(tool.Input) > 0 {
		var compact bytes.Buffer
		if json.Compact(&compact, tool.Input) != nil {
			compact.Reset()
			compact.Write(tool.Input)
		}
		lines = append(lines,
			"  input: "+text.Truncate(text.Printable(compact.String()), maxSchema))
	}
	return lines
}
