package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcproots "github.com/acp-agent/acp-agent/internal/mcp/roots"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
)

// fixMessage returns a server's message in a form that the MCP SDK can read. It never changes
// message itself.
func fixMessage(message []byte) []byte { return fixContent(mcproots.FixInputRequests(message)) }

// blockType matches the type of a content block in a message, but not in text inside a string.
var blockType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"type"\s*:\s*"([^"]*)"`)
})

// fixContent replaces content blocks that the MCP SDK cannot read by texts that say so, because the
// SDK rejects a whole result for one such block.
func fixContent(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"content"`)) || !mayBeUnreadable(message) {
		return message
	}
	result := strictjson.Find(message, "result")
	var blocks []json.RawMessage
	if json.Unmarshal(strictjson.Find(result, "content"), &blocks) != nil {
		return message
	}
	changed := false
	for i, block := range blocks {
		if why := unreadable(block); why != "" {
			blocks[i] = strictjson.Encode(map[string]string{"type": "text", "text": why})
			changed = true
		}
	}
	if !changed {
		return message
	}
	return strictjson.Set(message, "result",
		strictjson.Set(result, "content", strictjson.Encode(blocks)))
}

// mayBeUnreadable reports whether a message has something that looks like a content block of
// another type than text.
func mayBeUnreadable(message []byte) bool {
	for _, match := range blockType().FindAllSubmatch(message, -1) {
		if string(match[1]) != "text" {
			return true
		}
	}
	return bytes.Contains(message, []byte("null"))
}

// unreadable returns why a content block cannot be read, or "".
func unreadable(block json.RawMessage) string {
	alone := slices.Concat([]byte(`{"content":[`), block, []byte(`]}`))
	err := json.Unmarshal(alone, &mcp.CallToolResult{})
	if err == nil {
		return ""
	}
	var header struct{ Type string }
	if json.Unmarshal(block, &header) != nil || header.Type == "" {
		return fmt.Sprintf("[a content block of %s, which cannot be read: it has no type]",
			text.Size(len(block)))
	}
	return fmt.Sprintf("[a content block of type %s and %s, which cannot be read: %s]",
		text.Quote(text.Truncate(header.Type, 40)), text.Size(len(block)),
		text.Truncate(text.Printable(describeError(err)), 200))
}
