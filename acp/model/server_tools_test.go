package model

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/mcp"
)

// What a server's result says reaches the model, in whatever form it has: an embedded text may be
// encoded like a picture, and a tool may fail without a word.
func TestResultsOfServers(t *testing.T) {
	blob := func(content string) backend.Raw {
		return backend.Encode(map[string]any{"type": "resource", "resource": map[string]string{
			"uri": "file:///a", "mimeType": "application/x-thing",
			"blob": base64.StdEncoding.EncodeToString([]byte(content))}})
	}
	for want, result := range map[string]backend.ToolResult{
		"[The result is empty.]":                              {},
		"[The tool failed, and its server does not say why.]": {Failed: true},
		"file:///a:\nname: é\n\n":                             {Content: []backend.Raw{blob("name: é\n")}},
		"file:///a:\n[This is not text.]\n":                   {Content: []backend.Raw{blob("a\x00b")}},
	} {
		said, media := (&modelTurn{}).fromServer(result)
		require.Equal(t, want, said)
		require.Empty(t, media)
	}
}

// The tools of one server do not displace those of another one.
//
// Clause B7.
func TestToolsInTurns(t *testing.T) {
	list := func(prefix string, n int) (all []mcp.Tool) {
		for i := range n {
			all = append(all, mcp.Tool{Name: fmt.Sprintf("%s.%d", prefix, i)})
		}
		return all
	}
	counts := map[string]int{}
	for _, tool := range inTurns([][]mcp.Tool{list("big", 423), nil, list("small", 23)})[:110] {
		counts[strings.Split(tool.Name, ".")[0]]++
	}
	require.Equal(t, map[string]int{"big": 87, "small": 23}, counts)
	require.Len(t, inTurns([][]mcp.Tool{list("big", 423), list("small", 23)}), 446)
}
