package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// acceptOptions serves session/options, a draft that asks for the settings of a session before there
// is one. The backend answers it, if it can, for the roots that session/new would have.
func (c *connection) acceptOptions(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a := c.agent
	return func() (json.RawMessage, error) {
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		p, err := c.decodeSession(ctx, parseParams(r.Params, newShape), optionsFields)
		if err != nil {
			return nil, err
		}
		if err := a.chooseFolders(ctx, &p, backend.New, nil); err != nil {
			return nil, err
		}
		if err := a.checkSetup(ctx, p); err != nil {
			return nil, protocolError(err)
		}
		return run(a.backend.Call(ctx, r.Method, p.rest), r.Method)
	}
}
