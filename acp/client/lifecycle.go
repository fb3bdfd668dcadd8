package client

import (
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/workspace"
)

// Setup is what a session is made or opened with.
type Setup struct {
	// Roots are its directories. Additional ones need an agent that advertises them.
	Roots workspace.Roots
	// MCPServers are the MCP servers that it uses.
	MCPServers []sdk.McpServer
	// Meta is the request's _meta, nil for none.
	Meta json.RawMessage
}

// Session is an open session.
type Session struct {
	ID string
	// Result is the agent's answer as sent: modes, configOptions and the like.
	Result json.RawMessage
}

// NewSession makes a session.
func (c *Client) NewSession(ctx context.Context, s Setup) (Session, error) {
	agent, err := c.requires("", func(Agent) bool { return true })
	if err != nil {
		return Session{}, err
	}
	return c.open(ctx, agent, "session/new", "", s)
}

// LoadSession opens a stored session. Its conversation comes as updates before LoadSession returns.
func (c *Client) LoadSession(ctx context.Context, id string, s Setup) (Session, error) {
	agent, err := c.requires("loadSession", func(a Agent) bool { return a.Load })
	if err != nil {
		return Session{}, err
	}
	return c.open(ctx, agent, "session/load", id, s)
}

// ResumeSession opens a stored session without its conversation.
func (c *Client) ResumeSession(ctx context.Context, id string, s Setup) (Session, error) {
	agent, err := c.requires("sessionCapabilities.resume", func(a Agent) bool { return a.Resume })
	if err != nil {
		return Session{}, err
	}
	return c.open(ctx, agent, "session/resume", id, s)
}

// ForkSession makes a session that goes on from where another one is.
func (c *Client) ForkSession(ctx context.Context, id string, s Setup) (Session, error) {
	agent, err := c.requires("sessionCapabilities.fork", func(a Agent) bool { return a.Fork })
	if err != nil {
		return Session{}, err
	}
	return c.open(ctx, agent, "session/fork", id, s)
}

// CloseSession ends the session's turn and frees what the agent holds for it. It stays stored.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	if _, err := c.requires("sessionCapabilities.close", func(a Agent) bool { return a.Close }); err != nil {
		return err
	}
	_, err := c.call(ctx, "session/close", sessionParams{SessionID: id}, nil)
	return err
}

// DeleteSession removes a session for good.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	if _, err := c.requires("sessionCapabilities.delete", func(a Agent) bool { return a.Delete }); err != nil {
		return err
	}
	_, err := c.call(ctx, "session/delete", sessionParams{SessionID: id}, nil)
	return err
}

type sessionParams struct {
	SessionID string `json:"sessionId"`
}

type setupParams struct {
	SessionID  string          `json:"sessionId,omitempty"`
	Cwd        workspace.Dir   `json:"cwd"`
	Additional *workspace.Dirs `json:"additionalDirectories,omitempty"`
	MCPServers []sdk.McpServer `json:"mcpServers"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
}

// open sends a lifecycle request. id is the session's, or the source's of a fork, or "".
func (c *Client) open(ctx context.Context, agent Agent, method, id string, s Setup) (Session, error) {
	params := setupParams{
		SessionID:  id,
		Cwd:        s.Roots.Cwd(),
		MCPServers: append([]sdk.McpServer{}, s.MCPServers...),
		Meta:       s.Meta,
	}
	switch additional := s.Roots.Additional(); {
	case agent.AdditionalDirectories:
		params.Additional = &additional // the full list, be it empty (P3)
	case additional.Len() > 0:
		return Session{}, &UnsupportedError{Agent: agent.Name, Capability: additionalDirectories}
	}
	made := sessionParams{SessionID: id}
	raw, err := c.call(ctx, method, params, &made)
	if err != nil {
		return Session{}, err
	}
	return Session{ID: made.SessionID, Result: raw}, nil
}
