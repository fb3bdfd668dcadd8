package explore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// call answers /call. The host shows the call to the user and asks for permission.
func (t *commandTurn) call(ctx context.Context, p prompt) error {
	name, arguments := text.CutWord(p.text)
	if !strings.Contains(name, ".") {
		return t.Refuse("Give the name of a tool: " + text.Code("/call SERVER.TOOL [JSON]") +
			", for example " +
			text.Code(`/call files.read {"path": "a.txt"}`) + ". " + text.Code("/mcp tools") +
			" lists them.\n")
	}
	if arguments != "" && !json.Valid([]byte(arguments)) {
		return t.Refuse("The arguments of " + text.Code(name) + " are not valid JSON: " +
			text.Code(text.Truncate(arguments, 200)) + ".\n")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	result, err := t.host.Tools().Call(ctx, t.Updates,
		backend.ToolRequest{Name: name, Arguments: backend.Raw(arguments)})
	if err != nil {
		return t.servers().WriteError(ctx, err)
	}
	intro := "The tool " + text.Code(name) + " returned"
	if result.Failed {
		intro = "The tool " + text.Code(name) + " reports an error"
	}
	return t.ShowResult(intro, result)
}
