package acp

import (
	"context"
	"encoding/json"
)

// status serves session/status, which asks whether the session is active here.
func (q queuedRequest) status(ctx context.Context) (json.RawMessage, error) {
	if _, _, err := q.stored(ctx); err != nil {
		return nil, err
	}
	if q.ticket.Queue.Active() != nil {
		return json.RawMessage(`{"status":"open"}`), nil
	}
	return json.RawMessage(`{"status":"saved"}`), nil
}
