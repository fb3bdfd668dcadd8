package mcpclient_test

import (
	"fmt"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
)

func ExampleConfig() {
	c := mcpclient.Config{Name: "files", Transport: acpmcp.HTTP, URL: "https://example.com/mcp",
		Headers: []mcpclient.Pair{{Name: "Authorization", Value: "Bearer hunter2"}}}
	fmt.Printf("%v, %#v\n", c, c)
	// Output: files (http), files (http)
}
