package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/workspace"
)

// maxTitle bounds the title of a session that the child lists, in characters.
const maxTitle = 200

// Key implements [backend.Foreign]: it is the child's session id.
func (p *proxy) Key(saved []byte) string { return readState(saved).key() }

// Sessions implements [backend.Foreign]: what the child lists, page by page, up to Options.MaxForeign. A child that
// lists none, or could not open them, yields none. Entries that make no sense are passed over.
func (p *proxy) Sessions(ctx context.Context, cwd *workspace.Dir) iter.Seq2[backend.ForeignSession, error] {
	return func(yield func(backend.ForeignSession, error) bool) {
		a, err := p.lister(ctx)
		if a == nil {
			if err != nil {
				yield(backend.ForeignSession{}, err)
			}
			return
		}
		left, cursors := p.options.limits.maxListed, make(map[string]bool)
		for cursor := ""; ; {
			page, err := a.page(ctx, cwd, cursor)
			if err != nil {
				yield(backend.ForeignSession{}, err)
				return
			}
			for _, raw := range page.Sessions {
				f, err := foreign(raw)
				if err != nil {
					a.log.Debug("a session in the agent's list is passed over", "error", err)
					continue
				}
				if left--; left < 0 {
					a.log.Warn("the agent lists more sessions than are taken", "limit", p.options.limits.maxListed)
					return
				}
				if !yield(f, nil) {
					return
				}
			}
			// A list that goes round in circles, or on without sessions, has been seen to its end.
			if cursor = page.NextCursor; cursor == "" || cursors[cursor] || len(cursors) > p.options.limits.maxListed {
				return
			}
			cursors[cursor] = true
		}
	}
}

// lister is a child that lists sessions, nil if the agent does not, or cannot open again what it lists.
func (p *proxy) lister(ctx context.Context) (*agent, error) {
	switch {
	case p.toClient() == nil:
		return nil, errNotStarted
	case !opensWhatItLists(p.known()):
		return nil, nil
	}
	a, err := p.mainChild(ctx)
	if err != nil || !opensWhatItLists(a.info) {
		return nil, err
	}
	return a, nil
}

func opensWhatItLists(a client.Agent) bool { return a.List && (a.Load || a.Resume) }

// listPage is an answer to session/list.
type listPage struct {
	Sessions   []json.RawMessage `json:"sessions"`
	NextCursor string            `json:"nextCursor"`
}

func (a *agent) page(ctx context.Context, cwd *workspace.Dir, cursor string) (listPage, error) {
	params, err := json.Marshal(struct {
		Cwd    *workspace.Dir `json:"cwd,omitempty"`
		Cursor string         `json:"cursor,omitempty"`
	}{cwd, cursor})
	if err != nil {
		return listPage{}, err
	}
	result, err := a.call(ctx, "session/list", params)()
	if err != nil {
		return listPage{}, fmt.Errorf("session/list of the agent: %w", err)
	}
	var page listPage
	if err := json.Unmarshal(result, &page); err != nil {
		return listPage{}, fmt.Errorf("the agent's answer to session/list cannot be read: %w", err)
	}
	return page, nil
}

// foreign reads an entry of the child's list.
func foreign(raw json.RawMessage) (backend.ForeignSession, error) {
	var entry struct {
		ID         json.RawMessage `json:"sessionId"`
		Cwd        string          `json:"cwd"`
		Additional []string        `json:"additionalDirectories"`
		Title      string          `json:"title"`
		Updated    string          `json:"updatedAt"`
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return backend.ForeignSession{}, err
	}
	saved := state{ID: entry.ID}
	if saved.key() == "" {
		return backend.ForeignSession{}, fmt.Errorf("it has no id")
	}
	roots, err := workspace.NewRoots(entry.Cwd, entry.Additional)
	if err != nil {
		return backend.ForeignSession{}, err
	}
	encoded, err := saved.encode()
	if err != nil {
		return backend.ForeignSession{}, err
	}
	updated, err := time.Parse(time.RFC3339, entry.Updated)
	if err != nil {
		updated = time.Time{}
	}
	return backend.ForeignSession{State: encoded, Roots: roots, Title: titleLine(entry.Title), Updated: updated}, nil
}

// titleLine is a title without what we told the child, as one bounded line.
func titleLine(title string) string {
	return oneLine(withoutBlocks(title), maxTitle)
}

// oneLine is a text as one line of at most limit characters.
func oneLine(text string, limit int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

// Delete implements [backend.Foreign]: it has the child delete the session, if it can.
func (p *proxy) Delete(ctx context.Context, saved []byte) error {
	s := readState(saved)
	if s.key() == "" || p.toClient() == nil || !p.known().Delete {
		return nil
	}
	a, err := p.mainChild(ctx)
	if err != nil || !a.info.Delete {
		return err
	}
	return a.end(ctx, "session/delete", s.ID)
}
