package client

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/acp-agent/acp-agent/workspace"
)

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
