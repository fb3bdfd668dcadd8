package client

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"
)

// TurnEnd is how a turn ended.
type TurnEnd struct {
	StopReason sdk.StopReason
	// Result is the agent's answer as sent.
	Result json.RawMessage
}

// Prompt runs a turn. It returns when the turn has ended and its updates were handed over. Ending ctx
// gives the request up; to end a turn in the protocol's way, and see its end, use [Client.Cancel].
func (c *Client) Prompt(ctx context.Context, id string, content ...sdk.ContentBlock) (TurnEnd, error) {
	if _, err := c.requires("", func(Agent) bool { return true }); err != nil {
		return TurnEnd{}, err
	}
	params := struct {
		SessionID string             `json:"sessionId"`
		Prompt    []sdk.ContentBlock `json:"prompt"`
	}{id, append([]sdk.ContentBlock{}, content...)}
	c.turns.begin(id)
	defer c.turns.end(id)
	var end TurnEnd
	raw, err := c.call(ctx, "session/prompt", params, &end)
	end.Result = raw
	return end, err
}

// Cancel asks the agent to end the session's turn, and answers its open permission requests with
// "cancelled". The turn's Prompt returns when the agent has ended it. It waits only while the agent
// does not read.
func (c *Client) Cancel(ctx context.Context, id string) error {
	params, err := json.Marshal(sessionParams{SessionID: id})
	if err != nil {
		return fmt.Errorf("session/cancel: %w", err)
	}
	c.turns.cancel(id)
	return c.conn.Notify(ctx, "session/cancel", params)
}
