package mcpserver_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpserver"
	"github.com/acp-agent/acp-agent/workspace"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		panic(err)
	}
	server, err := mcpserver.Open(context.Background(),
		mcpserver.Options{Roots: roots, Version: "1.0"})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	request := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	var out strings.Builder
	err = server.Serve(context.Background(), strings.NewReader(request+"\n"), &out)
	fmt.Println(strings.Contains(out.String(), `"serverInfo":{"name":"acp-agent","version":"1.0"}`),
		err)
	// Output: true <nil>
}
