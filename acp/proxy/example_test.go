package proxy_test

import (
	"context"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What `acp-agent -- opencode acp` does.
func Example() {
	_ = acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Runtime: func() runtime.Runtime {
			return proxy.New(child.Command{Path: "opencode", Args: []string{"acp"}}, proxy.Options{})
		},
		Store: sessionstore.NewMemory(),
	})
}
