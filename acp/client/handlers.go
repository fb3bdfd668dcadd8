package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
)

// Update is a session/update as the agent sent it.
type Update struct {
	SessionID string
	// Kind is its member "sessionUpdate". It may be a kind that this program does not know.
	Kind string
	// Update is the member "update" of the params.
	Update json.RawMessage
	// Params are the whole params.
	Params json.RawMessage
}

// accept handles what the agent sends. It runs on the read loop.
func (c *Client) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.IsNotification() {
		switch {
		case r.Method == protocol.SessionUpdate && c.options.Updates != nil:
			c.options.Updates(ctx, parseUpdate(r.Params))
		case r.Method != protocol.SessionUpdate && c.options.Notifications != nil:
			c.options.Notifications(ctx, r.Method, r.Params)
		}
		return nil
	}
	handle := c.handler(r.Method)
	if handle == nil {
		return nil
	}
	return func() (json.RawMessage, error) { return handle(ctx, r.Params) }
}

// parseUpdate parses what it can of an update.
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
	return Update{SessionID: p.SessionID, Kind: kind.SessionUpdate, Update: p.Update,
		Params: params}
}

type handler = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// handler returns the function that answers a method, or nil.
func (c *Client) handler(method string) handler {
	if handle := c.options.Requests[method]; handle != nil {
		return handle
	}
	switch {
	case method == protocol.RequestPermission && c.options.Permission != nil:
		return typed(c.requestPermission)
	case method == protocol.ReadTextFile && c.options.ReadTextFile != nil:
		return typed(c.options.ReadTextFile)
	case method == protocol.WriteTextFile && c.options.WriteTextFile != nil:
		return typed(c.options.WriteTextFile)
	}
	return nil
}

// typed adapts a function of SDK types.
func typed[Request, Response any](f func(context.Context, Request) (Response, error)) handler {
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		var request Request
		if err := json.Unmarshal(params, &request); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cannot read params: %v", err)
		}
		response, err := f(ctx, request)
		if err != nil {
			return nil, err
		}
		return json.Marshal(response)
	}
}

// requestPermission answers session/request_permission until the session's prompt is cancelled.
func (c *Client) requestPermission(
	ctx context.Context, r sdk.RequestPermissionRequest,
) (response sdk.RequestPermissionResponse, err error) {
	deciding, cancel := context.WithCancel(ctx)
	defer cancel()
	if t := c.running.oldest(string(r.SessionId)); t != nil {
		defer context.AfterFunc(t.ctx, cancel)()
		if t.ctx.Err() != nil {
			cancel()
		}
	}
	cancelled := func() bool { return deciding.Err() != nil && ctx.Err() == nil }
	if !cancelled() {
		response, err = c.options.Permission(deciding, r)
	}
	if cancelled() {
		response.Outcome, err = sdk.NewRequestPermissionOutcomeCancelled(), nil
	}
	return response, err
}

// running has the unanswered prompts of each session, oldest first, to end the permission requests
// of cancelled ones.
type running struct {
	mu       sync.Mutex
	sessions map[string][]*turn
}

// turn belongs to a prompt. ctx ends when the prompt is cancelled.
type turn struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// begin records a prompt until end is called.
func (r *running) begin(id string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun := &turn{}
	begun.ctx, begun.cancel = context.WithCancel(context.Background())
	r.sessions[id] = append(r.sessions[id], begun)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		left := slices.DeleteFunc(r.sessions[id], func(t *turn) bool { return t == begun })
		if r.sessions[id] = left; len(left) == 0 {
			delete(r.sessions, id)
		}
	}
}

// oldest returns the turn of a session that the agent is running, or nil.
func (r *running) oldest(id string) *turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turns := r.sessions[id]; len(turns) > 0 {
		return turns[0]
	}
	return nil
}
