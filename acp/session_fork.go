package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// acceptFork serves session/fork: it creates a session with other roots and a copy of the source's
// finished turns. It does not wait for the source.
func (c *connection) acceptFork(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	a := c.agent
	return func() (json.RawMessage, error) {
		ctx, cancel := a.requestContext(ctx)
		defer cancel()
		p, err := c.decodeSession(ctx, parseParams(r.Params, loadShape), forkFields)
		if err != nil {
			return nil, err
		}
		source, err := a.sessions.Find(ctx, p.id, p.roots.Cwd())
		if err != nil {
			return nil, protocolError(err)
		}
		if err := a.chooseFolders(ctx, &p, backend.Fork, &source.Session); err != nil {
			return nil, err
		}
		return c.create(ctx, r, p, backend.Fork, source)
	}
}
