package model

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
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
