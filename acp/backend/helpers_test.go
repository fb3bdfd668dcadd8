package backend_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

func TestPromptText(t *testing.T) {
	text, err := backend.PromptText(backend.Raw(`{"prompt":[{"type":"text","text":"a"},{"type":"image","data":""},{"type":"text","text":"b"}]}`))
	require.NoError(t, err)
	require.Equal(t, "a\nb", text)
	_, err = backend.PromptText(backend.Raw(`[]`))
	require.Error(t, err)
}

func ExampleText() {
	fmt.Println(backend.Text("found <it>"))
	// Output: {"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"found <it>"}}}
}
