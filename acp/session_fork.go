package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// acceptFork is the first half of session/fork. It does not wait for its source.
func (a *agent) acceptFork(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		p, err := a.decodeSession(ctx, r.Params, forkFields)
		if err != nil {
			return nil, err
		}
		source, err := a.stored(ctx, p.id)
		if err != nil {
			return nil, err
		}
		act := backend.Activation{Cause: backend.Fork, State: source.State, History: rawHistory(a.options.Store.Finished(ctx, p.id))}
		return a.create(ctx, r, p, act, source.Title, func(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
			if n.State == nil {
				n.State = source.State
			}
			return a.options.Store.Fork(ctx, p.id, n)
		})
	}
}
