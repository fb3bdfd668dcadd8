package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

var forkShape = shape(loadShape.Fields, "cursorId")

// fork serves session/fork: it creates a session with other roots and a copy of the source's
// finished turns. It does not wait for the source.
func (c *connection) fork(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	p, err := c.decodeSession(ctx, r.Params, forkShape, required, optional)
	if err != nil {
		return nil, err
	}
	// A draft lets agents name positions in a session. They are not stored, so none is known.
	if at := strictjson.Find(p.rest, "cursorId"); len(at) > 0 && string(at) != "null" {
		wrong := strictjson.NewViolation("cursorId", at, strictjson.Unsupported)
		return nil, strictjson.Refuse(wrong.Expecting("no position: a copy has all finished turns"))
	}
	source, err := c.adapter.sessions.Find(ctx, p.id, p.folders.Cwd())
	if err != nil {
		return nil, err
	}
	return c.create(ctx, r, p, backend.Fork, source)
}
