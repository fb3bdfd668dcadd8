package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// status serves session/status, which asks whether the session is active here.
func (c *connection) status(
	ctx, _ context.Context, at *ticket, _ strictjson.Object,
) (json.RawMessage, error) {
	if _, _, err := c.storedIn(ctx, at.Queue); err != nil {
		return nil, err
	}
	if at.Queue.Active() != nil {
		return json.RawMessage(`{"status":"open"}`), nil
	}
	return json.RawMessage(`{"status":"saved"}`), nil
}
