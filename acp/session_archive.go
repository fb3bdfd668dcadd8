package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// archive serves session/archive. It closes the session and marks it as archived, so that lists
// leave it out unless they ask for archived sessions.
func (c *connection) archive(
	ctx, closing context.Context, at *ticket, params strictjson.Object,
) (json.RawMessage, error) {
	s, a, err := c.storedIn(ctx, at.Queue)
	if err == nil {
		err = c.remove(ctx, closing, at)
	}
	if err == nil {
		err = a.options.Store.Archive(ctx, s.ID)
	}
	if err != nil {
		return nil, err
	}
	return a.sessions.Pass(ctx, protocol.SessionArchive, s, params), nil
}

// unarchive serves session/unarchive.
func (c *connection) unarchive(
	ctx, _ context.Context, at *ticket, params strictjson.Object,
) (json.RawMessage, error) {
	s, a, err := c.storedIn(ctx, at.Queue)
	if err == nil {
		err = a.options.Store.Unarchive(ctx, s.ID)
	}
	if err != nil {
		return nil, err
	}
	return a.sessions.Pass(ctx, protocol.SessionUnarchive, s, params), nil
}
