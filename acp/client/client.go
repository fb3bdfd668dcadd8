package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// ProtocolVersion is the version of ACP that the client speaks.
const ProtocolVersion = 1

// Options configure a client. With the zero value it offers the agent nothing and drops updates.
type Options struct {
	// Name and Version are sent to the agent as clientInfo. Default: "acp-agent" and "0".
	Name, Version string
	// Capabilities are members of clientCapabilities in addition to fs, which follows from the
	// functions below. Nil means none.
	Capabilities json.RawMessage

	// Updates is called with each session/update, one at a time and in order. Nothing else is read
	// until it returns: it may block to slow the agent down, but must not wait for a response of
	// the agent.
	Updates func(ctx context.Context, u Update)
	// Notifications is called with every other notification, as Updates is.
	Notifications func(ctx context.Context, method string, params json.RawMessage)

	// Permission answers session/request_permission. When the session's turn is cancelled, its
	// context ends and the agent gets the answer "cancelled", whatever Permission returns.
	Permission func(ctx context.Context, r sdk.RequestPermissionRequest) (
		sdk.RequestPermissionResponse, error)
	// ReadTextFile answers fs/read_text_file.
	ReadTextFile func(ctx context.Context, r sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse,
		error)
	// WriteTextFile answers fs/write_text_file.
	WriteTextFile func(ctx context.Context, r sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse,
		error)
	// Requests answers other requests, by method. Requests without a function are answered "method
	// not found".
	Requests map[string]func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

	// MaxLine is the length of the longest line that is read, in bytes. Default 64 MiB.
	MaxLine int
	// Trace, if not nil, is called with every line that is read from the agent (sent is false) or
	// about to be written to it, without its line break. It is called for both directions
	// concurrently, must not keep or change line, and delays the connection while it runs.
	Trace func(sent bool, line []byte)
}

// Error is an error that the agent responded with. Its fields are Code (int), Message (string) and
// Data (json.RawMessage).
type Error = jsonrpc.Error

// Client is a connection to one agent. Its methods are safe for concurrent use.
type Client struct {
	options Options
	conn    *jsonrpc.Conn
	running running

	mu    sync.Mutex
	agent *Agent // nil before Initialize
}

// New returns a client of the agent that writes to in and reads from out. Nothing is read before
// [Client.Serve].
func New(in io.Reader, out io.Writer, o Options) *Client {
	c := &Client{options: o, running: running{sessions: make(map[string][]*turn)}}
	c.conn = jsonrpc.NewConn(jsonrpc.NewLines(in, out, o.MaxLine), jsonrpc.HandlerFunc(c.accept),
		jsonrpc.Options{OpaqueParams: true, Tap: o.Trace})
	return c
}

// Serve reads and handles the agent's messages until its output ends, which is not an error, or ctx
// ends. Requests are answered only while it runs. Call it once.
func (c *Client) Serve(ctx context.Context) error { return c.conn.Serve(ctx) }

// Call sends a request and returns a function that waits for the response. It does not block, so
// that requests are sent in the order of the calls.
func (c *Client) Call(
	ctx context.Context, method string, params json.RawMessage,
) (wait func() (json.RawMessage, error)) {
	return c.conn.Call(ctx, method, params)
}

// call sends a request, waits for the response and decodes it into result, unless that is nil. It
// returns the response as sent.
func (c *Client) call(
	ctx context.Context, method string, params, result any,
) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	response, err := c.conn.Call(ctx, method, raw)()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if result == nil {
		return response, nil
	}
	if err := json.Unmarshal(response, result); err != nil {
		return nil, fmt.Errorf("%s: cannot read the agent's response: %w", method, err)
	}
	return response, nil
}

// Agent describes an agent as its initialize response does.
type Agent struct {
	// Version is the protocol version that it responded with.
	Version int
	// Name is for error messages: its title or name, or "the agent".
	Name string
	// Release is the version of the agent itself, "" if it does not say.
	Release string
	// Prompt says which kinds of content a prompt may contain.
	Prompt sdk.PromptCapabilities
	// MCP says which MCP transports it supports in addition to stdio.
	MCP sdk.McpCapabilities
	// Load is the capability loadSession. The others are the session capabilities of these names.
	Load, Resume, Fork, List, Close, Delete, AdditionalDirectories bool
	// These are capabilities of drafts. SystemPrompt: lifecycle requests may have a systemPrompt.
	// Title: it serves session/set_title. Archive: it serves session/archive and session/unarchive.
	// Options: it serves session/options.
	SystemPrompt, Title, Archive, Options bool
	// Raw is its response to initialize as sent.
	Raw json.RawMessage
}

// ParseAgent parses a response to initialize. It ignores capabilities of the wrong type.
func ParseAgent(raw json.RawMessage) (Agent, error) {
	var r struct {
		ProtocolVersion int `json:"protocolVersion"`
		AgentInfo       struct {
			Name, Title string
			Version     json.RawMessage
		} `json:"agentInfo"`
		AgentCapabilities map[string]json.RawMessage `json:"agentCapabilities"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Agent{}, fmt.Errorf("initialize: cannot read the agent's response: %w", err)
	}
	a := Agent{
		Version: r.ProtocolVersion,
		Name:    cmp.Or(r.AgentInfo.Title, r.AgentInfo.Name, "the agent"),
		Load:    string(r.AgentCapabilities["loadSession"]) == "true",
		Raw:     raw,
	}
	_ = json.Unmarshal(r.AgentInfo.Version, &a.Release)
	_ = json.Unmarshal(r.AgentCapabilities["promptCapabilities"], &a.Prompt)
	_ = json.Unmarshal(r.AgentCapabilities["mcpCapabilities"], &a.MCP)
	var session map[string]json.RawMessage
	_ = json.Unmarshal(r.AgentCapabilities["sessionCapabilities"], &session)
	for name, has := range a.sessionCapabilities() {
		*has = len(session[name]) > 0 && session[name][0] == '{' // {} means yes, null means no
	}
	return a, nil
}

// sessionCapabilities returns the fields of the session capabilities, by name.
func (a *Agent) sessionCapabilities() map[string]*bool {
	return map[string]*bool{
		"resume": &a.Resume, "fork": &a.Fork, "list": &a.List, "close": &a.Close,
		"delete": &a.Delete, protocol.AdditionalDirectories: &a.AdditionalDirectories,
		"systemPrompt": &a.SystemPrompt, "title": &a.Title, "archive": &a.Archive,
		"options": &a.Options,
	}
}

// Initialize introduces the client and returns what the agent can do. Call it before other methods.
func (c *Client) Initialize(ctx context.Context) (Agent, error) {
	fs := strictjson.Encode(map[string]bool{ // the SDK's type would omit false
		"readTextFile":  c.options.ReadTextFile != nil,
		"writeTextFile": c.options.WriteTextFile != nil,
	})
	capabilities := strictjson.Set(c.options.Capabilities, "fs", fs)
	params := struct {
		ProtocolVersion    int                `json:"protocolVersion"`
		ClientCapabilities json.RawMessage    `json:"clientCapabilities"`
		ClientInfo         sdk.Implementation `json:"clientInfo"`
	}{ProtocolVersion, capabilities, sdk.Implementation{
		Name:    cmp.Or(c.options.Name, "acp-agent"),
		Version: cmp.Or(c.options.Version, "0"),
	}}
	raw, err := c.call(ctx, protocol.Initialize, params, nil)
	if err != nil {
		return Agent{}, err
	}
	agent, err := ParseAgent(raw)
	if err != nil {
		return Agent{}, err
	}
	if agent.Version != ProtocolVersion {
		return agent, fmt.Errorf("initialize: %s speaks ACP version %d, this client speaks %d",
			agent.Name, agent.Version, ProtocolVersion)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agent = &agent
	return agent, nil
}

// Authenticate logs in by one of the methods that the agent offers.
func (c *Client) Authenticate(ctx context.Context, methodID string) error {
	_, err := c.call(ctx, protocol.Authenticate, sdk.AuthenticateRequest{MethodId: methodID}, nil)
	return err
}

// initialized returns the agent, or an error before Initialize.
func (c *Client) initialized() (Agent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agent == nil {
		return Agent{}, errors.New("the agent is not initialized: call Initialize first")
	}
	return *c.agent, nil
}

// require returns the agent if it serves a method, and otherwise an error that names the capability
// as in initialize.
func (c *Client) require(method string) (Agent, error) {
	agent, err := c.initialized()
	if err != nil {
		return Agent{}, err
	}
	if capability, has := agent.capability(method); !has {
		return Agent{},
			fmt.Errorf("%s does not support this: it does not advertise %s", agent.Name, capability)
	}
	return agent, nil
}

// Serves reports whether the agent says that it serves a method about sessions.
func (a Agent) Serves(method string) bool {
	_, has := a.capability(method)
	return has
}

// capability returns the capability that a method about sessions needs, "" for none, and whether
// the agent has it.
func (a Agent) capability(method string) (name string, has bool) {
	name = strings.TrimPrefix(method, protocol.SessionPrefix)
	switch method {
	case protocol.SessionNew:
		return "", true
	case protocol.SessionLoad:
		return "loadSession", a.Load
	case protocol.SessionSetTitle:
		name = "title"
	case protocol.SessionUnarchive:
		name = "archive"
	}
	field, known := a.sessionCapabilities()[name]
	if !known {
		return method, false
	}
	return "sessionCapabilities." + name, *field
}
