package acp

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// timestamp is RFC 3339 with milliseconds, which sorts as text (A29).
const timestamp = "2006-01-02T15:04:05.000Z07:00"

// sessionInfo is ACP's SessionInfo with additionalDirectories always present (A15).
type sessionInfo struct {
	SessionID             sessionstore.ID `json:"sessionId"`
	Cwd                   workspace.Dir   `json:"cwd"`
	AdditionalDirectories workspace.Dirs  `json:"additionalDirectories"`
	Title                 string          `json:"title,omitempty"`
	UpdatedAt             string          `json:"updatedAt"`
}

// acceptList is the first half of session/list.
func (a *agent) acceptList(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	p, err := decodeList(r.Params)
	if err != nil {
		return failed(err)
	}
	return func() (json.RawMessage, error) {
		ctx, cancel := a.lasting(ctx)
		defer cancel()
		if err := a.initialized(ctx); err != nil {
			return nil, err
		}
		if p.cursor == "" {
			a.refresh(ctx)
		}
		query, err := onDisk(ctx, a, func() (sessionstore.Query, error) { return p.query(a.init.owner()), nil }, nil)
		if err != nil {
			return nil, err
		}
		page, err := a.options.Store.List(ctx, query)
		if err != nil {
			return nil, asWire(err)
		}
		return listResult(page)
	}
}

// listResult is a page as the response; sessions is never null (A18).
func listResult(page sessionstore.Page) (json.RawMessage, error) {
	result := struct {
		Sessions   []sessionInfo       `json:"sessions"`
		NextCursor sessionstore.Cursor `json:"nextCursor,omitempty"`
	}{Sessions: make([]sessionInfo, len(page.Sessions)), NextCursor: page.Next}
	for i, s := range page.Sessions {
		result.Sessions[i] = sessionInfo{
			SessionID:             s.ID,
			Cwd:                   s.Keys.Roots.Cwd(),
			AdditionalDirectories: s.Keys.Roots.Additional(),
			Title:                 s.Title,
			UpdatedAt:             s.Updated.UTC().Format(timestamp),
		}
	}
	return json.Marshal(result)
}

// listParams are the params of session/list.
type listParams struct {
	cwd        workspace.Dir // zero for no filter
	additional workspace.Dirs
	filtered   bool // by additional, which may be empty
	cursor     sessionstore.Cursor
}

// query looks up the real paths of the filters, and so takes its time.
func (p listParams) query(owner sessionstore.Agent) sessionstore.Query {
	q := sessionstore.Query{Agent: owner, Cursor: p.cursor}
	if !p.cwd.IsZero() {
		q.Cwd = sessionstore.FilterDir(p.cwd)
	}
	if p.filtered {
		q.Additional = sessionstore.FilterDirs(p.additional)
	}
	return q
}

// decodeList reads session/list's filters and cursor (A16).
func decodeList(params json.RawMessage) (listParams, error) {
	object, wrong := readParams(params, listShape)
	if len(wrong) > 0 {
		return listParams{}, strictjson.Refuse(wrong...)
	}
	var p listParams
	if path, given, bad := optionalText(object.Field("cwd")); bad != nil {
		wrong = append(wrong, bad...)
	} else if given {
		var err error
		p.cwd, err = workspace.ParseDir(path)
		wrong = append(wrong, rootViolations(err)...)
	}
	if field := object.Field("additionalDirectories"); field.Present() {
		paths, bad := directories(field)
		wrong = append(wrong, bad...)
		dirs, _ := workspace.ParseDirs(paths) // checked by directories
		p.additional, p.filtered = dirs.Without(p.cwd), true
	}
	if cursor, given, bad := optionalText(object.Field("cursor")); bad != nil {
		wrong = append(wrong, bad...)
	} else if p.cursor = sessionstore.Cursor(cursor); given && cursor == "" {
		wrong = append(wrong, object.Field("cursor").Refuse(strictjson.InvalidCursor))
	}
	return p, strictjson.Refuse(wrong...)
}

// optionalText reads a string that may be absent, or null, which means the same.
func optionalText(field strictjson.Field) (text string, given bool, bad []strictjson.Violation) {
	if !field.Present() || field.IsNull() {
		return "", false, nil
	}
	text, bad = field.Text()
	return text, bad == nil, bad
}
