package acp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

// connecting is a runtime that connects MCP servers itself, and takes its time to say so.
type connecting struct {
	scripted
	asked chan struct{}
}

func (r *connecting) Initialize(context.Context, backend.Raw, backend.Client) (backend.Info, error) {
	<-r.asked
	return backend.Info{
		Kind: "connecting", MCP: backend.BackendConnects,
		Initialize: backend.Raw(`{"agentCapabilities":{"mcpCapabilities":{"http":true,"sse":false}}}`),
	}, nil
}

func TestW12_ASessionRightBehindInitializeHasTheTransportsThatItAdvertises(t *testing.T) {
	r := &connecting{asked: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	params := func(kind string) string {
		return encode(map[string]any{"cwd": folder(t), "mcpServers": []any{
			map[string]any{"type": kind, "name": "s", "url": "http://localhost:1", "headers": []any{}},
		}})
	}
	first, initialize := c.request("initialize", `{"protocolVersion":1}`)
	http, open := c.request("session/new", params("http"))
	sse, refused := c.request("session/new", params("sse"))
	unknown, load := c.request("session/load", `{"sessionId":"none",`+params("http")[1:])
	c.send(initialize, open, refused, load)
	close(r.asked)
	require.Nil(t, c.response(first).Error)
	require.Nil(t, c.response(http).Error)
	require.Equal(t, "unsupported", c.response(sse).reason(t))
	require.Equal(t, "not_found", c.response(unknown).reason(t), "its servers are none to refuse")
}
