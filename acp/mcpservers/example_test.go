package mcpservers_test

import (
	"fmt"

	"github.com/acp-agent/acp-agent/acp/mcpservers"
)

func ExampleConfig() {
	c := mcpservers.Config{Name: "files", Transport: mcpservers.HTTP, URL: "https://example.com/mcp",
		Headers: []mcpservers.Pair{{Name: "Authorization", Value: "Bearer hunter2"}}}
	fmt.Println(c)
	fmt.Printf("%#v\n", c)
	// Output:
	// files (http)
	// files (http)
}
