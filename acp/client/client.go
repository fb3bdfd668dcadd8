package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Options configure a client. The zero value is usable: it offers the agent nothing, and drops updates.
type Options struct {
	// Name and Version are what the agent is told of us. Default: "acp-agent", "0".
	Name, Version string
	// Capabilities are members of clientCapabilities in addition to fs, which follows from
	// the handlers below. Nil for none.
	Capabilities json.RawMessage

	// Updates is given each session/update, one at a time in the order of the wire. Nothing else is
	// read meanwhile: it may block to slow the agent down, and must not wait for an answer of the agent.
	Updates func(ctx context.Context, u Update)
	// Notifications is given every other notification, as Updates is.
	Notifications func(ctx context.Context, method string, params json.RawMessage)

	// Permission answers session/request_permission. Its context ends when the session is cancelled;
	// the agent is then answered "cancelled", whatever it returns.
	Permission func(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error)
	// ReadTextFile answers fs/read_text_file.
	ReadTextFile func(ctx context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error)
	// WriteTextFile answers fs/write_text_file.
	WriteTextFile func(ctx context.Context, r sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error)
	// Requests answers requests by method, those above included. A request that nothing here answers
	// gets "method not found".
	Requests map[string]func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

	// Wire are the connection's limits, tap and logger. OpaqueParams is always set: what an agent sends is
	// taken as it is.
	Wire jsonrpc.Options
}

// Client is a connection to one agent. Its methods are safe for concurrent use.
type Client struct {
	options Options
	conn    *jsonrpc.Conn
	turns   turns

	mu    sync.Mutex
	agent *Agent // nil before Initialize
}

// New returns a client of the agent that reads out and writes in. Nothing is read before [Client.Serve].
func New(in io.Reader, out io.Writer, o Options) *Client {
	c := &Client{options: o}
	o.Wire.OpaqueParams = true
	c.conn = jsonrpc.NewConn(in, out, jsonrpc.HandlerFunc(c.accept), o.Wire)
	return c
}

// Serve reads what the agent sends until its output ends (nil) or ctx does. Without it nothing
// is answered. It is called once.
func (c *Client) Serve(ctx context.Context) error { return c.conn.Serve(ctx) }

// Conn is the connection itself, for whatever the typed methods do not say.
func (c *Client) Conn() *jsonrpc.Conn { return c.conn }

// call sends params as JSON and decodes the answer into result, if that is not nil. It returns the answer as sent.
func (c *Client) call(ctx context.Context, method string, params, result any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return decode(method, result)(c.conn.Call(ctx, method, raw)())
}

func decode(method string, result any) func(json.RawMessage, error) (json.RawMessage, error) {
	return func(answer json.RawMessage, err error) (json.RawMessage, error) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if result == nil {
			return answer, nil
		}
		if err := json.Unmarshal(answer, result); err != nil {
			return nil, fmt.Errorf("%s: the agent's answer cannot be read: %w", method, err)
		}
		return answer, nil
	}
}

// ProtocolVersion is the protocol's version that we speak.
const ProtocolVersion = 1

// Agent is what an agent said of itself.
type Agent struct {
	// Version is the protocol's version that it answered with.
	Version int
	// Name is what errors call it: its title or name, "the agent" if it has none.
	Name string
	// Prompt are the kinds of content that a prompt may have.
	Prompt sdk.PromptCapabilities
	// MCP are the transports of MCP servers besides stdio.
	MCP sdk.McpCapabilities
	// Load is session/load; the others are the session capabilities of their names.
	Load, Resume, Fork, List, Close, Delete bool
	// AdditionalDirectories: sessions can have more roots than cwd.
	AdditionalDirectories bool
	// Raw is its answer to initialize, as sent.
	Raw json.RawMessage
}

// ParseAgent reads an answer to initialize. A capability of the wrong type counts as not there.
func ParseAgent(raw json.RawMessage) (Agent, error) {
	var r struct {
		ProtocolVersion   int                          `json:"protocolVersion"`
		AgentInfo         struct{ Name, Title string } `json:"agentInfo"`
		AgentCapabilities map[string]json.RawMessage   `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Agent{}, fmt.Errorf("initialize: the agent's answer cannot be read: %w", err)
	}
	a := Agent{
		Version: r.ProtocolVersion,
		Name:    cmp.Or(r.AgentInfo.Title, r.AgentInfo.Name, "the agent"),
		Load:    string(r.AgentCapabilities["loadSession"]) == "true",
		Raw:     raw,
	}
	_ = json.Unmarshal(r.AgentCapabilities["promptCapabilities"], &a.Prompt)
	_ = json.Unmarshal(r.AgentCapabilities["mcpCapabilities"], &a.MCP)
	var session map[string]json.RawMessage
	_ = json.Unmarshal(r.AgentCapabilities["sessionCapabilities"], &session)
	for name, has := range map[string]*bool{
		"resume": &a.Resume, "fork": &a.Fork, "list": &a.List, "close": &a.Close, "delete": &a.Delete,
		"additionalDirectories": &a.AdditionalDirectories,
	} {
		// {} means yes; nothing and null mean no.
		*has = len(session[name]) > 0 && session[name][0] == '{'
	}
	return a, nil
}

// Initialize tells the agent who we are, and learns what it can do. It comes first.
func (c *Client) Initialize(ctx context.Context) (Agent, error) {
	fs := struct {
		ReadTextFile  bool `json:"readTextFile"`
		WriteTextFile bool `json:"writeTextFile"`
	}{c.options.ReadTextFile != nil, c.options.WriteTextFile != nil}
	encoded, err := json.Marshal(fs)
	if err != nil {
		return Agent{}, err
	}
	capabilities, err := strictjson.Put(c.options.Capabilities, "fs", encoded)
	if err != nil {
		return Agent{}, fmt.Errorf("client.Options.Capabilities: %w", err)
	}
	params := struct {
		ProtocolVersion    int                `json:"protocolVersion"`
		ClientCapabilities json.RawMessage    `json:"clientCapabilities"`
		ClientInfo         sdk.Implementation `json:"clientInfo"`
	}{ProtocolVersion, capabilities, sdk.Implementation{
		Name:    cmp.Or(c.options.Name, "acp-agent"),
		Version: cmp.Or(c.options.Version, "0"),
	}}
	raw, err := c.call(ctx, "initialize", params, nil)
	if err != nil {
		return Agent{}, err
	}
	agent, err := ParseAgent(raw)
	if err != nil {
		return Agent{}, err
	}
	if agent.Version != ProtocolVersion {
		return agent, fmt.Errorf("initialize: %s speaks ACP version %d, we speak %d", agent.Name, agent.Version, ProtocolVersion)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agent = &agent
	return agent, nil
}

// Authenticate logs in by one of the methods that the agent offers.
func (c *Client) Authenticate(ctx context.Context, methodID string) error {
	_, err := c.call(ctx, "authenticate", map[string]string{"methodId": methodID}, nil)
	return err
}

// requires returns the agent if it has a capability, else why it cannot be asked.
func (c *Client) requires(capability string, has func(Agent) bool) (Agent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.agent == nil:
		return Agent{}, ErrNotInitialized
	case !has(*c.agent):
		return Agent{}, &UnsupportedError{Agent: c.agent.Name, Capability: capability}
	}
	return *c.agent, nil
}

// ErrNotInitialized: a method was called before Initialize had succeeded.
var ErrNotInitialized = errors.New("the agent was not initialized: call Initialize first")

// UnsupportedError: the agent did not advertise what was asked of it. Nothing was sent.
type UnsupportedError struct {
	// Agent is the agent's name.
	Agent string
	// Capability is what it lacks, as initialize spells it: "sessionCapabilities.fork".
	Capability string
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s does not support this: it does not advertise %s", e.Agent, e.Capability)
	if e.Capability == additionalDirectories {
		text += "; open the session on one directory, or put acp-agent in front of it"
	}
	return text
}

const additionalDirectories = "sessionCapabilities.additionalDirectories"

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

// turns knows which sessions have a turn, and which of these were cancelled, for the sake of their
// permission requests.
type turns struct {
	mu       sync.Mutex
	sessions map[string]*turn
}

type turn struct {
	prompts   int
	cancelled bool
	waiting   map[*context.CancelFunc]struct{}
}

func (t *turns) begin(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions == nil {
		t.sessions = make(map[string]*turn)
	}
	if t.sessions[id] == nil {
		t.sessions[id] = &turn{waiting: make(map[*context.CancelFunc]struct{})}
	}
	t.sessions[id].prompts++
}

// end forgets a cancel with the turn that it was for: a prompt may be waiting behind it.
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
	for cancel := range s.waiting {
		(*cancel)()
	}
}

// ask returns a context that ends when the session's turn is cancelled, and has ended already if it
// was. done frees it.
func (t *turns) ask(ctx context.Context, id string) (asked context.Context, done func()) {
	asked, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return asked, cancel
	}
	if s.cancelled {
		cancel()
	}
	s.waiting[&cancel] = struct{}{}
	return asked, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.waiting, &cancel)
	}
}
