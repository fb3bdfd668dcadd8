package client

import (
	"context"
	"encoding/json"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/protocol"
)

// Update is a session/update as the agent sent it.
type Update struct {
	SessionID string
	// Kind is its member "sessionUpdate", perhaps one that this program does not know.
	Kind string
	// Update is the member "update" of the params.
	Update json.RawMessage
	// Params are the whole params.
	Params json.RawMessage
}

// accept handles what the agent sends. It runs on the read loop.
func (c *Client) accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	if r.IsNotification() {
		c.handleNotification(ctx, r)
		return nil
	}
	handle := c.handler(r.Method)
	if handle == nil {
		return nil
	}
	return func() (json.RawMessage, error) { return handle(ctx, r.Params) }
}

func (c *Client) handleNotification(ctx context.Context, r *jsonrpc.Request) {
	switch {
	case r.Method == protocol.SessionUpdate && c.options.Updates != nil:
		c.options.Updates(ctx, parseUpdate(r.Params))
	case r.Method != protocol.SessionUpdate && c.options.Notifications != nil:
		c.options.Notifications(ctx, r.Method, r.Params)
	}
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
	return Update{SessionID: p.SessionID, Kind: kind.SessionUpdate, Update: p.Update, Params: params}
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

// requestPermission asks for permission until the turn is cancelled.
func (c *Client) requestPermission(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	asking, done := c.turns.ask(ctx, string(r.SessionId))
	defer done()
	cancelled := sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
	if asking.Err() != nil && ctx.Err() == nil {
		return cancelled, nil
	}
	response, err := c.options.Permission(asking, r)
	if asking.Err() != nil && ctx.Err() == nil {
		return cancelled, nil
	}
	return response, err
}

// turns are the sessions with a running turn. It cancels the permission requests of a cancelled
// turn.
type turns struct {
	mu       sync.Mutex
	sessions map[string]*turn
}

type turn struct {
	prompts   int
	cancelled bool
	asking    map[*context.CancelFunc]struct{}
}

func (t *turns) begin(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[id] == nil {
		t.sessions[id] = &turn{asking: make(map[*context.CancelFunc]struct{})}
	}
	t.sessions[id].prompts++
}

// end ends one prompt. A cancellation does not apply to prompts that wait behind it.
func (t *turns) end(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	s.cancelled = false
	if s.prompts--; s.prompts == 0 {
		delete(t.sessions, id)
	}
}

func (t *turns) cancel(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return
	}
	s.cancelled = true
	for cancel := range s.asking {
		(*cancel)()
	}
}

// ask returns a context that ends when the session's turn is cancelled, or that has ended if it was
// cancelled before. Call done to release it.
func (t *turns) ask(ctx context.Context, id string) (asking context.Context, done func()) {
	asking, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return asking, cancel
	}
	if s.cancelled {
		cancel()
	}
	s.asking[&cancel] = struct{}{}
	return asking, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.asking, &cancel)
	}
}
