package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/briefing"
	"github.com/acp-agent/acp-agent/acp/proxy/internal/child"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxTitle bounds the title of a session that the child lists, in characters.
const maxTitle = 200

// Key implements [backend.Foreign]: it returns the child's session id.
func (p *proxy) Key(saved []byte) string { return decodeState(saved).key() }

// State implements [backend.Foreign].
func (p *proxy) State(key string) []byte {
	if key == "" {
		return nil
	}
	return state{ID: backend.Encode(key)}.encode()
}

// Sessions implements [backend.Foreign]: it yields the sessions that the child lists, also archived
// ones. If the child could not open them, it does not ask. Entries without an id are skipped. The
// list is partial unless it has all sessions of cwd in one page.
func (p *proxy) Sessions(
	ctx context.Context, cwd *workspace.Dir,
) iter.Seq2[backend.ForeignSession, error] {
	return func(yield func(backend.ForeignSession, error) bool) {
		fail := func(err error) { yield(backend.ForeignSession{}, err) }
		c, err := p.listingChild(ctx)
		if err != nil {
			fail(err)
			return
		}
		cursors, limit := make(map[string]bool), p.options.limits.MaxPages
		partial, left := cwd == nil, p.profile().Replay.ListLimit
		for cursor := ""; ; {
			page, err := listSessions(ctx, c, cwd, cursor)
			if err != nil {
				fail(err)
				return
			}
			for _, raw := range page.Sessions {
				f, err := parseListed(raw)
				left--
				if err != nil {
					partial = true
					c.Log.Debug("skipped a session in the agent's list", "error", err)
					continue
				}
				if sub, ok := c.Router.Find(p.Key(f.State)).(*subagent); ok && sub.parent != nil {
					continue // it is part of a session
				}
				if !yield(f, nil) {
					return
				}
			}
			cursor = page.NextCursor
			switch {
			case cursor == "" && (partial || left <= 0):
				fail(backend.ErrPartial)
				return
			case cursor == "":
				return
			case cursors[cursor] || len(cursors)+1 >= limit:
				fail(fmt.Errorf("the agent's list of sessions repeats itself, or has more than "+
					"%d pages", limit))
				return
			}
			partial, cursors[cursor] = true, true // the list may change from page to page
		}
	}
}

// listingChild returns a child that lists sessions and can open them, or [errors.ErrUnsupported].
func (p *proxy) listingChild(ctx context.Context) (*child.Process, error) {
	if !opensListed(p.program.Info()) {
		return nil, errors.ErrUnsupported
	}
	c, err := p.program.Main(ctx)
	if err == nil && !opensListed(c.Info) {
		err = errors.ErrUnsupported
	}
	return c, err
}

func opensListed(a client.Agent) bool { return a.List && (a.Load || a.Resume) }

// sessionPage is the result of session/list.
type sessionPage struct {
	Sessions   []json.RawMessage `json:"sessions"`
	NextCursor string            `json:"nextCursor"`
}

// listSessions calls session/list of a child.
func listSessions(
	ctx context.Context, c *child.Process, cwd *workspace.Dir, cursor string,
) (sessionPage, error) {
	var request struct {
		Cwd      *workspace.Dir `json:"cwd,omitempty"`
		Cursor   string         `json:"cursor,omitempty"`
		Archived string         `json:"archived,omitempty"`
	}
	request.Cwd, request.Cursor = cwd, cursor
	if c.Info.Archive {
		request.Archived = "include"
	}
	result, err := c.Request(ctx, protocol.SessionList, backend.Encode(request))()
	if err != nil {
		return sessionPage{}, fmt.Errorf("session/list of the agent: %w", err)
	}
	var page sessionPage
	if err := json.Unmarshal(result, &page); err != nil {
		return sessionPage{}, fmt.Errorf("cannot read the agent's response to session/list: %w",
			err)
	}
	return page, nil
}

// parseListed reads an entry of the child's list. It accepts a session without a valid working
// directory, which exists but cannot be opened. It ignores additional directories: a client sends
// them back as roots when it loads the session, so the child could choose its own roots.
func parseListed(raw json.RawMessage) (backend.ForeignSession, error) {
	var entry struct {
		ID      json.RawMessage `json:"sessionId"`
		Cwd     string          `json:"cwd"`
		Title   string          `json:"title"`
		Updated string          `json:"updatedAt"`

		Archived json.RawMessage `json:"archived"`
		Meta     json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return backend.ForeignSession{}, err
	}
	saved := state{ID: entry.ID}
	if saved.key() == "" {
		return backend.ForeignSession{}, errors.New("it has no id")
	}
	// What is invalid counts as missing.
	cwd, _ := workspace.ParseDir(entry.Cwd)
	updated, _ := time.Parse(time.RFC3339, entry.Updated)
	title := text.Line(briefing.WithoutBlocksInTitle(entry.Title), maxTitle)
	return backend.ForeignSession{
		State: saved.encode(), Cwd: cwd, Title: title, Updated: updated,
		Archived: string(entry.Archived) == "true", Meta: entry.Meta,
	}, nil
}

// CallStored implements [backend.Foreign]: it passes the request on to a child that advertises the
// method.
func (p *proxy) CallStored(
	ctx context.Context, method string, saved []byte, params backend.Raw,
) (backend.Raw, error) {
	s := decodeState(saved)
	if s.key() == "" || !p.program.Info().Serves(method) {
		return nil, nil
	}
	c, err := p.program.Main(ctx)
	if err != nil || !c.Info.Serves(method) {
		return nil, err
	}
	if s.Earlier != nil { // whether the child has it or not
		_, _ = c.RequestStored(ctx, method, withSessionID(params, s.Earlier.ID))
	}
	return c.RequestStored(ctx, method, withSessionID(params, s.ID))
}
