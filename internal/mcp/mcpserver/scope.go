package mcpserver

//lint:file-ignore SA1019 the MCP SDK deprecates roots and log messages (SEP-2577); they are supported for existing clients and servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// maxQuoted is the most bytes of a client's text that are repeated in logs and results.
const maxQuoted = 256

// source says where the roots of a scope come from.
type source string

const (
	sourceConfigured source = "configured"
	sourceSession    source = "session"
	sourceClient     source = "client"
	sourceNone       source = "none"
)

// whenGone returns what to do about a root whose directory is gone.
func (s source) whenGone() string {
	const gone = "the directory was deleted or replaced after it was opened: "
	if s == sourceClient {
		return gone + "it is opened again when the client announces its roots again"
	}
	return gone + "restart the server to use what is there now"
}

// scope holds the roots that a client's calls can access. It is safe for concurrent use.
type scope struct {
	source  source
	names   map[workspace.Dir]string // which the client gave roots
	leftOut []leftOutRoot
	reason  string               // why no file is accessible
	ws      *workspace.Workspace // nil if no file is accessible, as is tools
	tools   *tools.Set
	opened  mcproots.Snapshot // the roots of ws
}

// closedScope returns a scope without accessible files.
func closedScope(from source, reason string, leftOut ...leftOutRoot) *scope {
	return &scope{source: from, reason: reason, leftOut: leftOut}
}

// openScope returns the scope of an open workspace, which it closes if that fails.
func (s *Server) openScope(ctx context.Context, from source, ws *workspace.Workspace) *scope {
	if s.options.Guard != nil {
		guarded, err := s.options.Guard(ctx, ws)
		if err != nil {
			_ = ws.Close()
			return closedScope(from, "the user's rules are not known: "+err.Error())
		}
		ws = guarded
	}
	opened, err := mcproots.Take(ws)
	if err != nil { // a root has just disappeared
		opened = mcproots.Snapshot{}
	}
	return &scope{source: from, ws: ws, opened: opened,
		tools: tools.New(ws, tools.Options{Permit: s.options.Permit})}
}

// gone reports whether the directory of an opened root is no longer where it was. What is there
// now is never used in its place.
func (sc *scope) gone(r workspace.Root) bool {
	return sc.opened.Has(r.Real) && !sc.opened.Existing().Has(r.Real)
}

// openConfigured opens all the roots that the user named, or none.
func (s *Server) openConfigured(
	ctx context.Context, from source, roots workspace.Roots,
) (*scope, error) {
	ws, err := workspace.Open(ctx, roots, s.options.Workspace)
	if err != nil {
		return nil, err
	}
	return s.openScope(ctx, from, ws), nil
}

// openSession opens the roots that the session has now.
func (s *Server) openSession(ctx context.Context) *scope {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	sc, err := s.openGranted(ctx)
	if err != nil {
		return closedScope(sourceSession, err.Error())
	}
	return sc
}

// openGranted opens the session's roots if all of them are still where they were.
func (s *Server) openGranted(ctx context.Context) (*scope, error) {
	roots, err := s.options.Session(ctx)
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, errors.New("the session has no folders other than its working directory")
	}
	var dirs, readOnly []string
	for _, r := range roots {
		dirs = append(dirs, r.Dir.String())
		if r.Grant == workspace.ReadOnly {
			readOnly = append(readOnly, r.Dir.String())
		}
	}
	set, err := workspace.NewRoots(dirs[0], dirs[1:])
	if err != nil {
		return nil, err
	}
	sc, err := s.openConfigured(ctx, sourceSession, set.ReadOnlyAt(readOnly))
	if err != nil {
		return nil, err
	}
	if sc.ws == nil {
		return sc, nil
	}
	for _, opened := range sc.ws.Opened() {
		granted := func(r workspace.Root) bool { return r.Dir == opened.Dir && r.Real == opened.Real }
		if !slices.ContainsFunc(roots, granted) {
			sc.close()
			return nil, fmt.Errorf("%s now points somewhere else than when the session was opened: "+
				"load the session again", text.Printable(opened.Dir.String()))
		}
	}
	return sc, nil
}

// openList opens the valid roots of a client's list. The error is the cause of ctx.
func (s *Server) openList(ctx context.Context, list *mcp.ListRootsResult) (*scope, error) {
	entries, err := mcproots.ParseList(list)
	if err != nil {
		s.log.Warn("a client's list of roots is too long", "error", err)
	}
	var dirs []string
	var leftOut []leftOutRoot
	names := map[workspace.Dir]string{}
	for _, e := range entries {
		if e.Err == nil {
			e.Err = s.checkRoot(ctx, e.Dir, len(dirs))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		uri, name := text.Truncate(e.URI, maxQuoted), text.Truncate(e.Name, maxQuoted)
		if e.Err == nil {
			dirs = append(dirs, e.Dir.String())
			if _, twice := names[e.Dir]; !twice {
				names[e.Dir] = name
			}
		} else if len(leftOut) < maxLeftOut {
			s.log.Warn("a root of the client is left out", "uri", uri, "reason", e.Err)
			reason := e.Err.Error()
			if invalid, ok := errors.AsType[*mcproots.URIError](e.Err); ok {
				reason = invalid.Reason // without repeating the URI
			}
			leftOut = append(leftOut, leftOutRoot{uri, name, reason})
		}
	}
	if len(dirs) == 0 {
		return closedScope(sourceClient, "the client's list of roots has no valid entry",
			leftOut...), nil
	}
	set, err := workspace.NewRoots(dirs[0], dirs[1:])
	if err != nil {
		return nil, err
	}
	ws, err := workspace.Open(ctx, set, s.options.Workspace)
	if err != nil {
		return closedScope(sourceClient, "the client's roots could not be opened: "+err.Error(),
			leftOut...), context.Cause(ctx)
	}
	sc := s.openScope(ctx, sourceClient, ws)
	sc.names, sc.leftOut = names, leftOut
	return sc, nil
}

// checkRoot returns why dir cannot be added as another root, or nil.
func (s *Server) checkRoot(ctx context.Context, dir workspace.Dir, others int) error {
	if limit := cmp.Or(s.options.Workspace.MaxRoots, workspace.DefaultMaxRoots); others >= limit {
		return fmt.Errorf("too many folders (the limit is %d)", limit)
	}
	ws, err := workspace.Open(ctx, workspace.RootsFrom(dir, workspace.Dirs{}), s.options.Workspace)
	if err != nil {
		return rootError(err)
	}
	return ws.Close()
}

// rootError returns why a single root could not be opened, without naming it.
func rootError(err error) error {
	if bad := (workspace.RootErrors)(nil); errors.As(err, &bad) && len(bad) == 1 {
		switch bad[0].Reason {
		case workspace.ReasonMissing:
			return errors.New("there is no such directory")
		case workspace.ReasonNotDirectory:
			return errors.New("it is not a directory")
		case workspace.ReasonUnreadable:
			return errors.New("it cannot be read")
		case workspace.ReasonDenied:
			return errors.New("it is outside the directories that this server may serve")
		}
	}
	return err
}

// catalog scans the scope's roots for instructions, commands and skills. It returns nil if no root
// is accessible.
func (sc *scope) catalog(ctx context.Context) (*discovery.Catalog, error) {
	if sc.ws == nil {
		return nil, nil
	}
	return discovery.Scan(ctx, sc.ws)
}

// close closes the scope's roots.
func (sc *scope) close() {
	if sc.ws != nil {
		_ = sc.ws.Close()
	}
}
