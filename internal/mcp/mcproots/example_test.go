package mcproots_test

//lint:file-ignore SA1019 the SDK marks roots as deprecated (SEP-2577)

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
)

func ExampleParseList() {
	entries, _ := mcproots.ParseList(&mcp.ListRootsResult{Roots: []*mcp.Root{
		{URI: "file://server/share"}, {URI: "file:///src/app/../lib"},
	}})
	for _, e := range entries {
		fmt.Println(e.Err)
	}
	// Output:
	// "file://server/share" is not the URI of a directory: it names another host
	// "file:///src/app/../lib" is not the URI of a directory: it has a "." or ".." segment
}
