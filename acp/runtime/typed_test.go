package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/runtime"
)

func TestPromptTextJoinsTheTextBlocks(t *testing.T) {
	text, err := runtime.PromptText(runtime.Raw(`{"prompt":[{"type":"text","text":"a"},{"type":"image","data":""},{"type":"text","text":"b"}]}`))
	require.NoError(t, err)
	require.Equal(t, "a\nb", text)
	_, err = runtime.PromptText(runtime.Raw(`[]`))
	require.Error(t, err)
}

func ExampleText() {
	fmt.Println(string(runtime.Text("found <it>")))
	// Output: {"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"found <it>"}}}
}
