package acp_test

import (
	"context"

	"github.com/acp-agent/acp-agent/acp/runtime"
)

// advertising is a scripted runtime that connects MCP servers itself and answers initialize with what a test gives.
type advertising struct {
	scripted
	initialize string
}

func (r *advertising) Initialize(context.Context, runtime.Raw, runtime.Client) (runtime.Info, error) {
	return runtime.Info{Kind: "advertising", MCP: runtime.RuntimeConnects, Initialize: runtime.Raw(r.initialize)}, nil
}
