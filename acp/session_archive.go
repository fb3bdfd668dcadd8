package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// archive serves session/archive. It closes the session and marks it as archived, so that lists
// leave it out unless they ask for archived sessions.
func (q queuedRequest) archive(ctx context.Context) (json.RawMessage, error) {
	s, a, err := q.stored(ctx)
	if err == nil {
		err = q.remove(ctx)
	}
	if err == nil {
		err = a.options.Store.Archive(ctx, s.ID)
	}
	if err != nil {
		return nil, err
	}
	return a.sessions.Pass(ctx, protocol.SessionArchive, s, q.params), nil
}

// unarchive serves session/unarchive.
func (q queuedRequest) unarchive(ctx context.Context) (json.RawMessage, error) {
	s, a, err := q.stored(ctx)
	if err == nil {
		err = a.options.Store.Unarchive(ctx, s.ID)
	}
	if err != nil {
		return nil, err
	}
	return a.sessions.Pass(ctx, protocol.SessionUnarchive, s, q.params), nil
}
