package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/listing"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// sessionOptions serves session/options, a draft that asks for the settings of a session before it is
// opened. The backend answers it, if it can, for the roots that the session would have: a stored
// one if the request names it, and a new one otherwise.
func (c *connection) sessionOptions(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	a := c.adapter
	p, err := c.decodeSession(ctx, r.Params, loadShape, optional, optional)
	if err != nil {
		return nil, err
	}
	var named listing.Openable
	if p.id != "" {
		named, err = a.find(ctx, p)
		if named.Unlisted {
			err = errUnknownSession(p.id)
		}
		if err != nil {
			return nil, err
		}
	}
	p, err = a.chooseFolders(ctx, p, backend.Resume, named.Session) // as if it were resumed
	if err != nil {
		return nil, err
	}
	if err := a.checkSetup(ctx, p); err != nil {
		return nil, err
	}
	if foreign := a.sessions.Foreign; foreign != nil && named.StateKey != "" {
		result, err := foreign.CallStored(ctx, r.Method, named.State, p.rest)
		if result != nil || err != nil {
			return result, protocolError(err)
		}
	}
	return run(a.backend.Call(ctx, r.Method, p.rest), r.Method)
}
