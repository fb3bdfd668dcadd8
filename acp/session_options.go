package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// settings serves session/options, a draft that asks for the settings of a session before there is
// one. The backend answers it, if it can, for the roots that session/new would have.
func (c *connection) settings(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	a := c.agent
	p, err := c.decodeSession(ctx, parseParams(r.Params, newShape), optionsFields)
	if err != nil {
		return nil, err
	}
	if err := a.chooseFolders(ctx, &p, backend.New, nil); err != nil {
		return nil, err
	}
	if err := a.checkSetup(ctx, p); err != nil {
		return nil, err
	}
	return run(a.backend.Call(ctx, r.Method, p.rest), r.Method)
}
