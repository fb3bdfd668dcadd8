package backend_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
)

func ExampleText() {
	fmt.Println(backend.Text("found <it>"))
	// Output: {"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"found <it>"}}}
}
