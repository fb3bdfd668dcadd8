package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

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

// Query says which sessions to list. The zero value lists all.
type Query struct {
	// Cwd, if not the zero Dir, asks for sessions with this working directory.
	Cwd workspace.Dir
	// Additional, if not nil, asks for sessions with exactly these additional roots. An empty list asks
	// for those that have none. It needs an agent that advertises additional roots.
	Additional *workspace.Dirs
	// Cursor goes on after a page, "" starts.
	Cursor string
}

// Page is a part of a list.
type Page struct {
	Sessions []SessionInfo
	// Next is the cursor of the next page, "" at the end.
	Next string
	// Result is the agent's answer as sent.
	Result json.RawMessage
}

// SessionInfo is a session in a list, as the agent tells of it.
type SessionInfo struct {
	ID  string `json:"sessionId"`
	Cwd string `json:"cwd"`
	// AdditionalDirectories is nil if the agent did not say, empty if it said that there are none.
	AdditionalDirectories []string `json:"additionalDirectories"`
	// Title is nil if there is none.
	Title *string `json:"title"`
	// UpdatedAt is the time of the last activity, as sent (RFC 3339), "" if not told.
	UpdatedAt string          `json:"updatedAt"`
	Meta      json.RawMessage `json:"_meta"`
}

// ListSessions returns one page of the sessions that the agent has.
func (c *Client) ListSessions(ctx context.Context, q Query) (Page, error) {
	agent, err := c.requires("sessionCapabilities.list", func(a Agent) bool { return a.List })
	if err != nil {
		return Page{}, err
	}
	if q.Additional != nil && !agent.AdditionalDirectories {
		return Page{}, &UnsupportedError{Agent: agent.Name, Capability: additionalDirectories}
	}
	params := struct {
		Cwd        string          `json:"cwd,omitempty"`
		Additional *workspace.Dirs `json:"additionalDirectories,omitempty"`
		Cursor     string          `json:"cursor,omitempty"`
	}{q.Cwd.String(), q.Additional, q.Cursor}
	var answer struct {
		Sessions   []SessionInfo `json:"sessions"`
		NextCursor string        `json:"nextCursor"`
	}
	raw, err := c.call(ctx, "session/list", params, &answer)
	if err != nil {
		return Page{}, err
	}
	return Page{Sessions: answer.Sessions, Next: answer.NextCursor, Result: raw}, nil
}

// Sessions yields all sessions that q asks for, page by page. An error ends it.
func (c *Client) Sessions(ctx context.Context, q Query) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		for {
			page, err := c.ListSessions(ctx, q)
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			for _, s := range page.Sessions {
				if !yield(s, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Cursor = page.Next
		}
	}
}

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
