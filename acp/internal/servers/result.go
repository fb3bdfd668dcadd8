package servers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
)

// toolResult returns a result as a model gets it, with at most limit bytes of content. MCP's
// content blocks are valid in ACP.
func toolResult(r *mcp.CallToolResult, limit int) backend.ToolResult {
	content := newBoundedContent(limit)
	blocks := slices.DeleteFunc(slices.Clone(r.Content), isForUser)
	for _, block := range blocks {
		content.add(block)
	}
	result := backend.ToolResult{Failed: r.IsError}
	if r.StructuredContent != nil {
		raw, err := json.Marshal(r.StructuredContent)
		switch {
		case err == nil && isSaid(raw, blocks): // as servers should for clients that show only text
		case err == nil && len(raw) <= limit:
			result.Structured = raw
		default:
			content.size += len(raw)
			content.truncated = true
		}
	}
	if len(blocks) == 0 && len(r.Content) > 0 && result.Structured == nil {
		content.note("[The server shows this result to the user only.]")
	}
	result.Content, result.Cut = content.blocks, content.describeCut()
	return result
}

// isForUser reports whether a server says of a block that it is for the user and not for the model.
func isForUser(block mcp.Content) bool {
	var a *mcp.Annotations
	switch b := block.(type) {
	case *mcp.TextContent:
		a = b.Annotations
	case *mcp.ImageContent:
		a = b.Annotations
	case *mcp.AudioContent:
		a = b.Annotations
	case *mcp.ResourceLink:
		a = b.Annotations
	case *mcp.EmbeddedResource:
		a = b.Annotations
	}
	return a != nil && slices.Contains(a.Audience, "user") &&
		!slices.Contains(a.Audience, "assistant")
}

// isSaid reports whether the text of a block is the JSON value.
func isSaid(value []byte, content []mcp.Content) bool {
	var want any
	if json.Unmarshal(value, &want) != nil {
		return false
	}
	return slices.ContainsFunc(content, func(block mcp.Content) bool {
		said, isText := block.(*mcp.TextContent)
		var has any
		return isText && json.Unmarshal([]byte(said.Text), &has) == nil &&
			reflect.DeepEqual(has, want)
	})
}

// boundedContent collects content blocks up to a number of bytes. It truncates text, and adds notes
// about the first other blocks that are too large.
type boundedContent struct {
	limit, left int
	size        int // of all blocks
	blocks      []backend.Raw
	truncated   bool
	omitted     int // blocks replaced by a note
}

func newBoundedContent(limit int) *boundedContent {
	return &boundedContent{limit: limit, left: limit}
}

// maxOmitted is the maximum number of notes about blocks that were left out.
const maxOmitted = 10

// describeCut returns a sentence about a result that is too large: its size, and how much of it is
// used. It returns "" for other results.
func (b *boundedContent) describeCut() string {
	if !b.truncated {
		return ""
	}
	size, limit := text.Size(b.size), text.Size(b.limit)
	return fmt.Sprintf("The result is %s long; the limit is %s", size, limit)
}

// add adds a block, unless it is nil or cannot be encoded.
func (b *boundedContent) add(content any) {
	raw, err := json.Marshal(content)
	if content == nil || err != nil {
		return
	}
	b.size += len(raw)
	if len(raw) <= b.left {
		b.left -= len(raw)
		b.blocks = append(b.blocks, raw)
		return
	}
	var block struct{ Type, Text string }
	_ = json.Unmarshal(raw, &block) // a block that cannot be read is not text
	first := !b.truncated
	b.truncated = true
	switch {
	case block.Type == "text" && b.left > 0:
		b.note("%s\n[truncated: the text is %s long; the limit is %s]",
			text.Truncate(block.Text, b.left), text.Size(len(block.Text)), text.Size(b.limit))
		b.left = 0
	case b.omitted == maxOmitted:
		b.omitted++
		b.note("[more was left out]")
	case b.omitted < maxOmitted && (first || block.Type != "text"):
		b.omitted++
		b.note("[left out: %s of %s; the limit is %s]",
			text.Truncate(block.Type, 40), text.Size(len(raw)), text.Size(b.limit))
	}
}

func (b *boundedContent) note(format string, args ...any) {
	b.blocks = append(b.blocks, backend.Encode(sdk.TextBlock(fmt.Sprintf(format, args...))))
}
