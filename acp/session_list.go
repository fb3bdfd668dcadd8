package acp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// timestamp is RFC 3339 with milliseconds, which sorts as text.
const timestamp = "2006-01-02T15:04:05.000Z07:00"

// sessionInfo is ACP's SessionInfo. Unlike the SDK's type it always has additionalDirectories, even
// without any.
type sessionInfo struct {
	SessionID             sessionstore.ID `json:"sessionId"`
	Cwd                   workspace.Dir   `json:"cwd"`
	AdditionalDirectories workspace.Dirs  `json:"additionalDirectories"`
	Title                 string          `json:"title,omitempty"`
	UpdatedAt             string          `json:"updatedAt"`
	Archived              bool            `json:"archived"`
	Meta                  json.RawMessage `json:"_meta,omitempty"`
}

// list serves session/list.
func (c *connection) list(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	p, err := decodeList(r.Params)
	if err != nil {
		return nil, err
	}
	if err := c.initialized(ctx); err != nil {
		return nil, err
	}
	a := c.adapter
	var open []sessionstore.ID
	for _, s := range c.home.queues.Active() {
		open = append(open, s.storeID)
	}
	query := sessionstore.Query{Agent: a.identity(), Archive: p.archive, Cursor: p.cursor,
		Unused: sessionstore.UnusedFilter{
			Before: time.Now().Add(-sessionstore.UnusedGrace), Keep: open}}
	err = a.tasks.OnDisk(ctx, func() error { // the filters are real paths
		if !p.cwd.IsZero() {
			query.Cwd = sessionstore.FilterDir(p.cwd)
		}
		if p.filtered {
			query.Additional = sessionstore.FilterDirs(p.additional)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	page, err := a.sessions.List(ctx, p.cwd, query)
	if err != nil {
		return nil, err
	}
	return listResult(page, open)
}

// listResult returns the response for a page, in which it marks those that are open. Its sessions
// are never null.
func listResult(page sessionstore.Page, open []sessionstore.ID) (json.RawMessage, error) {
	result := struct {
		Sessions   []sessionInfo       `json:"sessions"`
		NextCursor sessionstore.Cursor `json:"nextCursor,omitempty"`
	}{Sessions: make([]sessionInfo, len(page.Sessions)), NextCursor: page.Next}
	for i, s := range page.Sessions {
		ours := struct {
			Gone bool `json:"deletedInAgent,omitzero"`
			Open bool `json:"open,omitzero"`
		}{s.Gone, slices.Contains(open, s.ID)}
		if ours.Gone || ours.Open {
			s.Meta = strictjson.Set(s.Meta, protocol.Ours, strictjson.Encode(ours))
		}
		result.Sessions[i] = sessionInfo{
			SessionID:             s.ID,
			Cwd:                   s.Keys.Roots.Cwd(),
			AdditionalDirectories: s.Keys.Roots.Additional(),
			Title:                 s.ListedTitle(),
			UpdatedAt:             s.Updated.UTC().Format(timestamp),
			Archived:              s.Archived,
			Meta:                  s.Meta,
		}
	}
	return backend.Encode(result), nil
}

// listParams are the params of session/list.
type listParams struct {
	cwd        workspace.Dir // zero for no filter
	additional workspace.Dirs
	filtered   bool // additional is a filter, perhaps an empty one
	archive    sessionstore.ArchiveFilter
	cursor     sessionstore.Cursor
}

var listShape = shape(shapes{protocol.AdditionalDirectories: list(nil)},
	"cwd", "cursor", protocol.Archived, "_meta")

// decodeList reads the filters and the cursor of session/list.
func decodeList(raw json.RawMessage) (listParams, error) {
	params, err := parseParams(raw, listShape)
	if err != nil {
		return listParams{}, err
	}
	var (
		p listParams
		v strictjson.Violations
	)
	if field := params.Field("cwd"); field.Present() && !field.IsNull() {
		dir, wrong := decodeDir(field)
		v.Add(wrong...)
		p.cwd = dir
	}
	named := decodeAdditional(&v, p.cwd, params.Field(protocol.AdditionalDirectories))
	p.additional, p.filtered = named.Additional(), named.Listed()
	p.archive = decodeArchiveFilter(&v, params.Field(protocol.Archived))
	cursor, given := v.OptionalText(params.Field("cursor"))
	p.cursor = sessionstore.Cursor(cursor)
	if given && cursor == "" {
		v.Add(params.Field("cursor").Refuse(strictjson.InvalidCursor))
	}
	return p, v.Err()
}

// decodeArchiveFilter reads the filter by archive state, which leaves out archived sessions if it
// is absent.
func decodeArchiveFilter(v *strictjson.Violations, f strictjson.Field) sessionstore.ArchiveFilter {
	name, given := v.OptionalText(f)
	if !given {
		return sessionstore.WithoutArchived
	}
	filters := map[string]sessionstore.ArchiveFilter{"exclude": sessionstore.WithoutArchived,
		"include": sessionstore.ArchivedToo, "only": sessionstore.OnlyArchived}
	filter, known := filters[name]
	if !known {
		v.Add(f.Refuse(strictjson.Unsupported).Expecting(`"exclude", "include" or "only"`))
	}
	return filter
}
