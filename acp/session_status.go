package acp

import (
	"context"
	"encoding/json"
)

// status serves session/status, which asks whether the session is active here.
func (a *agent) status(ctx, _ context.Context, at *ticket, _ params) (json.RawMessage, error) {
	if _, err := a.stored(ctx, at.queue.id); err != nil {
		return nil, err
	}
	if at.queue.active() != nil {
		return json.RawMessage(`{"status":"open"}`), nil
	}
	return json.RawMessage(`{"status":"saved"}`), nil
}
