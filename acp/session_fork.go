package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// fork serves session/fork: it creates a session with other roots and a copy of the source's
// finished turns. It does not wait for the source.
func (c *connection) fork(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	p, err := c.decodeSession(ctx, parseParams(r.Params, loadShape), forkFields)
	if err != nil {
		return nil, err
	}
	source, err := c.agent.sessions.Find(ctx, p.id, p.roots.Cwd())
	if err != nil {
		return nil, err
	}
	if err := c.agent.chooseFolders(ctx, &p, backend.Fork, &source.Session); err != nil {
		return nil, err
	}
	return c.create(ctx, r, p, backend.Fork, source)
}
