package client

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// Update is a session/update as the agent sent it.
type Update struct {
	SessionID string
	// Kind is the update's kind, which may be one that nobody here knows.
	Kind string
	// Update is the member "update", to be decoded by its kind.
	Update json.RawMessage
	// Params are the whole of the notification.
	Params json.RawMessage
}

// accept takes what the agent sends, on the read loop.
func (c *Client) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.IsNotification() {
		c.notified(ctx, r)
		return nil
	}
	answer := c.answerer(r.Method)
	if answer == nil {
		return nil
	}
	return func() (json.RawMessage, error) { return answer(ctx, r.Params) }
}

func (c *Client) notified(ctx context.Context, r *jsonrpc.Request) {
	switch {
	case r.Method == "session/update" && c.options.Updates != nil:
		c.options.Updates(ctx, parseUpdate(r.Params))
	case r.Method != "session/update" && c.options.Notifications != nil:
		c.options.Notifications(ctx, r.Method, r.Params)
	}
}

// parseUpdate reads what it can: an update that is not of the protocol's shape is still handed over.
func parseUpdate(params json.RawMessage) Update {
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	_ = json.Unmarshal(params, &p)
	var kind struct {
		SessionUpdate string `json:"sessionUpdate"`
	}
	_ = json.Unmarshal(p.Update, &kind)
	return Update{SessionID: p.SessionID, Kind: kind.SessionUpdate, Update: p.Update, Params: params}
}

type answerer = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// answerer returns what answers a method, nil if nothing does.
func (c *Client) answerer(method string) answerer {
	if answer := c.options.Requests[method]; answer != nil {
		return answer
	}
	switch {
	case method == "session/request_permission" && c.options.Permission != nil:
		return typed(c.permission)
	case method == "fs/read_text_file" && c.options.ReadTextFile != nil:
		return typed(c.options.ReadTextFile)
	case method == "fs/write_text_file" && c.options.WriteTextFile != nil:
		return typed(c.options.WriteTextFile)
	}
	return nil
}

// typed makes an answerer of a function with types.
func typed[Q, A any](f func(context.Context, Q) (A, error)) answerer {
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		var q Q
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params cannot be read: %v", err)
		}
		a, err := f(ctx, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}

// permission asks, unless and until the turn is cancelled.
func (c *Client) permission(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	asked, done := c.turns.ask(ctx, string(r.SessionId))
	defer done()
	cancelled := sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
	if asked.Err() != nil && ctx.Err() == nil {
		return cancelled, nil
	}
	answer, err := c.options.Permission(asked, r)
	if asked.Err() != nil && ctx.Err() == nil {
		return cancelled, nil
	}
	return answer, err
}
