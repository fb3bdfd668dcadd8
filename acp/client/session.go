package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// Setup holds the parameters for creating or opening a session.
type Setup struct {
	// Roots are its directories. Additional ones need an agent that advertises
	// sessionCapabilities.additionalDirectories.
	Roots workspace.Roots
	// OmitAdditional leaves additionalDirectories out of the request, instead of sending those of
	// Roots. Agents in which folders can be configured, such as acp-agent, then use those.
	OmitAdditional bool
	// MCPServers are its MCP servers.
	MCPServers []sdk.McpServer
}

// Session is an open session.
type Session struct {
	ID string
	// Result is the agent's response as sent, with modes, configOptions and the like.
	Result json.RawMessage
}

// NewSession creates a session.
func (c *Client) NewSession(ctx context.Context, s Setup) (Session, error) {
	return c.open(ctx, protocol.SessionNew, "", s)
}

// LoadSession opens a stored session. Its history arrives as updates before LoadSession returns.
func (c *Client) LoadSession(ctx context.Context, id string, s Setup) (Session, error) {
	return c.open(ctx, protocol.SessionLoad, id, s)
}

// ResumeSession opens a stored session without its history.
func (c *Client) ResumeSession(ctx context.Context, id string, s Setup) (Session, error) {
	return c.open(ctx, protocol.SessionResume, id, s)
}

// ForkSession creates a session that continues the conversation of another one.
func (c *Client) ForkSession(ctx context.Context, id string, s Setup) (Session, error) {
	return c.open(ctx, protocol.SessionFork, id, s)
}

// CloseSession ends the session's turn and frees the agent's resources. The session stays stored.
func (c *Client) CloseSession(ctx context.Context, id string) error {
	return c.end(ctx, protocol.SessionClose, id)
}

// DeleteSession removes a stored session.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.end(ctx, protocol.SessionDelete, id)
}

// end sends a request that ends a session.
func (c *Client) end(ctx context.Context, method, id string) error {
	if _, err := c.require(method); err != nil {
		return err
	}
	_, err := c.call(ctx, method, sessionParams{SessionID: id}, nil)
	return err
}

type sessionParams struct {
	SessionID string `json:"sessionId"`
}

// open sends a lifecycle request. id is empty for a new session.
func (c *Client) open(ctx context.Context, method, id string, s Setup) (Session, error) {
	agent, err := c.require(method)
	if err != nil {
		return Session{}, err
	}
	// The SDK's types cannot express an empty additionalDirectories.
	params := struct {
		SessionID  string          `json:"sessionId,omitempty"`
		Cwd        workspace.Dir   `json:"cwd"`
		Additional *workspace.Dirs `json:"additionalDirectories,omitempty"`
		MCPServers []sdk.McpServer `json:"mcpServers"`
	}{SessionID: id, Cwd: s.Roots.Cwd(), MCPServers: append([]sdk.McpServer{}, s.MCPServers...)}
	switch additional := s.Roots.Additional(); {
	case s.OmitAdditional:
	case agent.AdditionalDirectories:
		params.Additional = &additional // the full list, even if it is empty
	case additional.Len() > 0:
		return Session{}, fmt.Errorf("%s does not support this: it does not advertise "+
			"sessionCapabilities.%s; open the session on one directory, "+
			"or put acp-agent in front of it", agent.Name, protocol.AdditionalDirectories)
	}
	opened := sessionParams{SessionID: id}
	raw, err := c.call(ctx, method, params, &opened)
	if err != nil {
		return Session{}, err
	}
	return Session{ID: opened.SessionID, Result: raw}, nil
}

// TurnEnd says how a turn ended.
type TurnEnd struct {
	StopReason sdk.StopReason
	// Result is the agent's response as sent.
	Result json.RawMessage
}

// Prompt runs a turn and returns when it has ended. To end a turn and see how it ended, use
// [Client.Cancel] rather than ctx.
func (c *Client) Prompt(
	ctx context.Context, id string, content ...sdk.ContentBlock,
) (TurnEnd, error) {
	if _, err := c.initialized(); err != nil {
		return TurnEnd{}, err
	}
	params := struct {
		SessionID string             `json:"sessionId"`
		Prompt    []sdk.ContentBlock `json:"prompt"`
	}{id, append([]sdk.ContentBlock{}, content...)}
	defer c.running.begin(id)()
	var end TurnEnd
	raw, err := c.call(ctx, protocol.SessionPrompt, params, &end)
	end.Result = raw
	return end, err
}

// Cancel asks the agent to end the session's turn, and answers its pending permission requests with
// "cancelled". Prompt returns when the agent has ended the turn. Cancel blocks only while the agent
// does not read.
func (c *Client) Cancel(ctx context.Context, id string) error {
	if t := c.running.oldest(id); t != nil {
		t.cancel()
	}
	params := strictjson.Encode(sessionParams{SessionID: id})
	return c.conn.Notify(ctx, protocol.SessionCancel, params)
}

// Query says which sessions to list. The zero value lists all.
type Query struct {
	// Cwd, unless it is the zero Dir, selects sessions with this working directory.
	Cwd workspace.Dir
	// Additional, unless it is nil, selects sessions with exactly these additional roots; an empty
	// list selects those without. It needs an agent that advertises
	// sessionCapabilities.additionalDirectories.
	Additional *workspace.Dirs
}

// SessionInfo describes a session in a list.
type SessionInfo struct {
	ID  string `json:"sessionId"`
	Cwd string `json:"cwd"`
	// AdditionalDirectories is nil if the agent did not send it.
	AdditionalDirectories []string `json:"additionalDirectories"`
	// Title is nil without a title.
	Title *string `json:"title"`
	// UpdatedAt is the time of the last activity as the agent sent it (RFC 3339), "" if unknown.
	UpdatedAt string `json:"updatedAt"`
}

// Sessions yields all sessions that match q, page by page. It stops at the first error.
func (c *Client) Sessions(ctx context.Context, q Query) iter.Seq2[SessionInfo, error] {
	params := struct {
		Cwd        string          `json:"cwd,omitempty"`
		Additional *workspace.Dirs `json:"additionalDirectories,omitempty"`
		Cursor     string          `json:"cursor,omitempty"`
	}{Cwd: q.Cwd.String(), Additional: q.Additional}
	return func(yield func(SessionInfo, error) bool) {
		agent, err := c.require(protocol.SessionList)
		if err == nil && q.Additional != nil && !agent.AdditionalDirectories {
			err = fmt.Errorf("%s cannot list sessions by additional directories: "+
				"it does not advertise sessionCapabilities.%s",
				agent.Name, protocol.AdditionalDirectories)
		}
		for params := params; err == nil; {
			var page struct {
				Sessions   []SessionInfo `json:"sessions"`
				NextCursor string        `json:"nextCursor"`
			}
			_, err = c.call(ctx, protocol.SessionList, params, &page)
			for _, s := range page.Sessions {
				if err == nil && !yield(s, nil) {
					return
				}
			}
			if params.Cursor = page.NextCursor; err == nil && params.Cursor == "" {
				return
			}
		}
		yield(SessionInfo{}, err)
	}
}
