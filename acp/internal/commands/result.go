package commands

import (
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// ShowResult shows a result after a text that says where it comes from.
func (r *Reply) ShowResult(intro string, result backend.ToolResult) error {
	if len(result.Content) == 0 && len(result.Structured) == 0 {
		return r.Write(intro + " without content.\n")
	}
	r.Write(intro + ":\n\n")
	for _, raw := range result.Content {
		r.showBlock(raw)
	}
	if len(result.Structured) > 0 {
		r.Quote(string(result.Structured))
	}
	if result.Cut != "" {
		return r.Write("Truncated: " + result.Cut + ".\n")
	}
	return nil
}

// showBlock shows a content block: text quoted, and a description of anything else.
func (r *Reply) showBlock(raw backend.Raw) {
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
			described += fmt.Sprintf(", is not text: it is a block of %s.",
				text.Size(backend.BlockSize(raw)))
		}
	case b.Type == "resource_link":
		described = fmt.Sprintf("A link to %s.", name(b.URI))
	default:
		described = "A block of type " + name(b.Type)
		if b.MIMEType != "" {
			described += " (" + name(b.MIMEType) + ")"
		}
		described += fmt.Sprintf(" of %s.", text.Size(backend.BlockSize(raw)))
	}
	if described != "" {
		r.Write(described + "\n\n")
	}
	if quoted != nil {
		r.Quote(*quoted)
	}
}
