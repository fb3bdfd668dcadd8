package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

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
