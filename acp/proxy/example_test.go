package proxy_test

import (
	"context"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// What `acp-agent -- opencode acp` does.
func Example() {
	_ = acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Backend: func() backend.Backend {
			return proxy.New(process.Command{Path: "opencode", Args: []string{"acp"}}, proxy.Options{})
		},
		Store: sessionstore.NewMemory(),
	})
}
