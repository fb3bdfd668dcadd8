package proxy_test

import (
	"context"
	"os"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Serve opencode with acp-agent in front of it, as "acp-agent -- opencode acp" does.
func Example() {
	store := sqlite.NewMemory()
	defer store.Close()
	_ = acp.Serve(context.Background(), os.Stdin, os.Stdout, acp.Options{
		Backend: func() backend.Backend {
			return proxy.New(proxy.Command{Path: "opencode", Args: []string{"acp"}},
				proxy.Options{})
		},
		Store: store,
	})
}
