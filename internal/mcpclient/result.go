package mcpclient

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// resultOf is a tool's result with at most limit bytes of content. The content blocks of MCP are those of ACP.
func resultOf(r *mcp.CallToolResult, limit int) backend.ToolResult {
	result := backend.ToolResult{Failed: r.IsError}
	b := bounded{left: limit}
	for _, c := range r.Content {
		b.add(c)
	}
	result.Content, result.Cut = b.blocks, b.cut
	if r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil && len(raw) <= limit {
			result.Structured = raw
		} else {
			result.Cut = true
		}
	}
	return result
}

// bounded gathers content up to a number of bytes. Of text the beginning is kept; of what else is too large the first
// are named.
type bounded struct {
	left   int
	blocks []backend.Raw
	cut    bool
	named  int // of what was left out
}

// maxNamed is how many blocks are named that were left out.
const maxNamed = 10

func (b *bounded) add(c mcp.Content) {
	if c == nil {
		return
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return
	}
	b.addRaw(raw)
}

func (b *bounded) addRaw(raw backend.Raw) {
	if len(raw) <= b.left {
		b.left -= len(raw)
		b.blocks = append(b.blocks, raw)
		return
	}
	var block struct{ Type, Text string }
	_ = json.Unmarshal(raw, &block) // what cannot be read is not text
	first := !b.cut
	b.cut = true
	switch {
	case block.Type == "text" && b.left > 0:
		kept := cut(block.Text, b.left)
		b.blocks = append(b.blocks, textBlock(fmt.Sprintf("%s\n[cut: the text has %d bytes]", kept, len(block.Text))))
		b.left = 0
	case b.named == maxNamed:
		b.named++
		b.blocks = append(b.blocks, textBlock("[more is left out]"))
	case b.named < maxNamed && (first || block.Type != "text"):
		b.named++
		b.blocks = append(b.blocks, textBlock(fmt.Sprintf("[left out: %s of %d bytes]", cut(block.Type, 40), len(raw))))
	}
}

// shown is a result as the client is shown it, bounded once more.
func shown(r backend.ToolResult, limit int) []backend.Raw {
	b := bounded{left: limit}
	for _, raw := range r.Content {
		b.addRaw(raw)
	}
	return b.blocks
}
