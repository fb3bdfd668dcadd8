package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// source says where a scope comes from.
type source string

const (
	configured  source = "configured"
	fromClient  source = "client"
	fallback    source = "fallback"
	fromNowhere source = "none"
)

// scope is what one call, or the calls of one client, can reach. It is safe for concurrent use.
type scope struct {
	source  source
	entries []entry
	note    string               // why nothing is accessible, "" if something is
	ws      *workspace.Workspace // nil if nothing is accessible
	tools   *tools.Set
	found   found
}

// entry is a root that was named, and what became of it.
type entry struct {
	offered mcproots.Offered
	opened  *workspace.Root
}

// closed is a scope in which nothing is accessible.
func closed(from source, note string, entries []entry) *scope {
	return &scope{source: from, note: note, entries: entries, tools: tools.New(nil, tools.Options{})}
}

// configured opens roots that the user named. All are opened, or none.
func (s *Server) configured(ctx context.Context, from source, roots workspace.Roots) (*scope, error) {
	ws, err := workspace.Open(ctx, roots, s.options.Workspace)
	if err != nil {
		return nil, err
	}
	sc := &scope{source: from, ws: ws, tools: tools.New(ws, s.options.Tools), found: newFound()}
	for _, root := range ws.Opened() {
		sc.entries = append(sc.entries, entry{offered: mcproots.Offered{URI: mcproots.FromDir(root.Real), Dir: root.Dir}, opened: &root})
	}
	return sc, nil
}

// offered opens what a client offers: each entry that is a directory that may be a root. The others say why not.
// The error is the context's.
func (s *Server) offered(ctx context.Context, offers []mcproots.Offered) (*scope, error) {
	entries := make([]entry, len(offers))
	var dirs []string
	for i, o := range offers {
		if o.Err == nil {
			o.Err = s.judge(ctx, o.Dir, len(dirs))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o.Err == nil {
			dirs = append(dirs, o.Dir.String())
		} else {
			s.options.Logger.Warn("a root of the client is left out", "uri", shorten(o.URI), "reason", o.Err)
		}
		entries[i].offered = o
	}
	if len(dirs) == 0 {
		return closed(fromClient, "the client's list of roots has no valid entry", entries), nil
	}
	roots, err := workspace.NewRoots(dirs[0], dirs[1:])
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(ctx, roots, s.options.Workspace)
	if err != nil {
		return closed(fromClient, "the client's roots could not be opened: "+err.Error(), entries), context.Cause(ctx)
	}
	for i := range entries {
		for _, root := range ws.Opened() {
			if entries[i].offered.Err == nil && entries[i].offered.Dir == root.Dir {
				entries[i].opened = &root
			}
		}
	}
	return &scope{source: fromClient, entries: entries, ws: ws, tools: tools.New(ws, s.options.Tools), found: newFound()}, nil
}

// judge says why a directory cannot be one more root, nil if it can.
func (s *Server) judge(ctx context.Context, dir workspace.Dir, already int) error {
	limit := s.options.Workspace.MaxRoots
	if limit == 0 {
		limit = workspace.DefaultMaxRoots
	}
	if already >= limit {
		return fmt.Errorf("there are %d roots before it, which is the limit", limit)
	}
	ws, err := workspace.Open(ctx, workspace.RootsFrom(dir, workspace.Dirs{}), s.options.Workspace)
	if err != nil {
		return plain(err)
	}
	return ws.Close()
}

// plain is the reason in an error of one root, without the field that it names for other protocols.
func plain(err error) error {
	if bad := strictjson.ViolationsOf(err); len(bad) == 1 {
		switch bad[0].Reason {
		case strictjson.Missing:
			return errors.New("there is no such directory")
		case strictjson.NotDirectory:
			return errors.New("it is not a directory")
		case strictjson.Unreadable:
			return errors.New("it cannot be read")
		case strictjson.Denied:
			return errors.New("it lies outside of what this server is allowed to serve")
		}
	}
	return err
}

// close frees the scope's directories.
func (sc *scope) close() {
	if sc.ws != nil {
		_ = sc.ws.Close()
	}
}

// shorten cuts a client's text for a log or an answer.
func shorten(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
