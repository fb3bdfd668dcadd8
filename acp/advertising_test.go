package acp_test

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// advertising is a scripted runtime that connects MCP servers itself and answers initialize with what a test gives.
type advertising struct {
	scripted
	initialize string
}

func (r *advertising) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	return backend.Info{Kind: "advertising", MCP: backend.BackendConnects, Initialize: backend.Raw(r.initialize)}, nil
}
