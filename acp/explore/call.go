package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// call answers /call. The host shows the call to the user and asks for permission.
func (t *turn) call(ctx context.Context, p prompt) error {
	name, arguments := text.CutWord(p.text)
	if !strings.Contains(name, ".") {
		return t.write("Give the name of a tool: " + text.Code("/call SERVER.TOOL [JSON]") +
			", for example " +
			text.Code(`/call files.read {"path": "a.txt"}`) + ". " + text.Code("/mcp tools") +
			" lists them.\n")
	}
	if arguments != "" && !json.Valid([]byte(arguments)) {
		return t.write("The arguments of " + text.Code(name) + " are not valid JSON: " +
			text.Code(text.Truncate(arguments, 200)) + ".\n")
	}
	if err := t.flush(); err != nil {
		return err
	}
	result, err := t.host.Tools().Call(ctx, t.updates,
		backend.ToolRequest{Name: name, Arguments: backend.Raw(arguments)})
	if err != nil {
		return t.writeServerError(ctx, err)
	}
	intro := "The tool " + text.Code(name) + " returned"
	if result.Failed {
		intro = "The tool " + text.Code(name) + " reports an error"
	}
	return t.showResult(intro, result)
}

// showResult shows a result after a text that says where it comes from.
func (t *turn) showResult(intro string, result backend.ToolResult) error {
	if len(result.Content) == 0 && len(result.Structured) == 0 {
		return t.write(intro + " without content.\n")
	}
	if err := t.write(intro + ":\n\n"); err != nil {
		return err
	}
	for _, raw := range result.Content {
		if err := t.showBlock(raw); err != nil {
			return err
		}
	}
	if len(result.Structured) > 0 && len(result.Content) == 0 {
		if err := t.quote(string(result.Structured)); err != nil {
			return err
		}
	}
	if result.Cut != "" {
		return t.write("Truncated: " + result.Cut + ".\n")
	}
	return nil
}

// showBlock shows a content block: text quoted, and a description of anything else.
func (t *turn) showBlock(raw backend.Raw) error {
	var b struct {
		Type, URI, MIMEType string
		Text                *string
		Resource            struct {
			URI, MIMEType string
			Text          *string
		}
	}
	var quoted *string
	var described string
	name := func(s string) string { return text.Code(text.Truncate(s, maxDescription)) }
	switch err := json.Unmarshal(raw, &b); {
	case err != nil:
		described = fmt.Sprintf("An invalid block of %s.", text.Size(len(raw)))
	case b.Type == "text":
		quoted = b.Text
	case b.Type == "resource":
		quoted = b.Resource.Text
		described = "The resource " + name(b.Resource.URI)
		if b.Resource.MIMEType != "" {
			described += ", of type " + name(b.Resource.MIMEType)
		}
		if quoted != nil {
			described += ":"
		} else {
			described += fmt.Sprintf(", is not text: it is a block of %s.", text.Size(len(raw)))
		}
	case b.Type == "resource_link":
		described = fmt.Sprintf("A link to %s.", name(b.URI))
	default:
		described = "A block of type " + name(b.Type)
		if b.MIMEType != "" {
			described += " (" + name(b.MIMEType) + ")"
		}
		described += fmt.Sprintf(" of %s.", text.Size(len(raw)))
	}
	if described != "" {
		if err := t.write(described + "\n\n"); err != nil {
			return err
		}
	}
	if quoted == nil {
		return nil
	}
	return t.quote(*quoted)
}
