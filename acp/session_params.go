package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// sessionParams are the params of new, load, resume and fork, checked as far as possible without
// the store and the file system. They do not change: what chooses or drops folders and servers
// returns others.
type sessionParams struct {
	id      sessionstore.ID // of load, resume and fork, and perhaps of options
	roots   workspace.Roots
	listed  bool     // the client sent additionalDirectories
	folders []Folder // the additional roots if it did not
	servers []mcpclient.Config
	rest    backend.Raw // the params without sessionId, with the additional roots
}

// presence is whether a member must be present.
type presence int

const (
	absent presence = iota // the method does not have the member
	optional
	required
)

// decodeSession reads the params of a lifecycle method, and reports everything that is wrong with
// them. id and servers say whether it has these members. decodeSession waits for a running
// initialize, which decides which MCP transports are advertised.
func (c *connection) decodeSession(
	ctx context.Context, raw json.RawMessage, shape *strictjson.Shape, id, servers presence,
) (sessionParams, error) {
	if err := c.initialized(ctx); err != nil {
		return sessionParams{}, err
	}
	params, err := parseParams(raw, shape)
	if err != nil {
		return sessionParams{}, err
	}
	a := c.adapter
	var v strictjson.Violations
	p := sessionParams{rest: params.Without(protocol.SessionID),
		listed: params.Field(protocol.AdditionalDirectories).Present()}
	switch given := params.Field(protocol.SessionID); id {
	case required:
		p.id = sessionstore.ID(v.Text(given))
	case optional:
		given, _ := v.OptionalText(given)
		p.id = sessionstore.ID(given)
	}
	p.roots = decodeRoots(&v, params)
	p.servers = a.decodeServers(&v, params.Field(protocol.MCPServers), servers)
	content.CheckSystemPrompt(&v, params.Field(protocol.SystemPrompt), a.info().SystemPrompts)
	return p, v.Err()
}

// decodeRoots reads cwd and additionalDirectories.
func decodeRoots(v *strictjson.Violations, params strictjson.Object) workspace.Roots {
	var cwd workspace.Dir
	path, wrong := params.Field("cwd").Text()
	for i, w := range wrong {
		if w.Reason == strictjson.Required || w.Reason == strictjson.Null {
			wrong[i] = w.Expecting("an absolute path")
		}
	}
	v.Add(wrong...)
	if wrong == nil {
		var err error
		cwd, err = workspace.ParseDir(path)
		v.Add(rootViolations(err)...)
	}
	return workspace.RootsFrom(cwd,
		decodeDirectories(v, params.Field(protocol.AdditionalDirectories)))
}

// decodeDirectories reads additionalDirectories if it is present. Every entry is checked.
func decodeDirectories(v *strictjson.Violations, f strictjson.Field) workspace.Dirs {
	if !f.Present() {
		return workspace.Dirs{}
	}
	var (
		paths     []string
		positions []int // of paths in the list
		found     []strictjson.Violation
	)
	for i, item := range v.Items(f) {
		if len(found) >= strictjson.MaxViolations {
			break
		}
		path, wrong := item.Text()
		if found = append(found, wrong...); wrong == nil {
			paths, positions = append(paths, path), append(positions, i)
		}
	}
	dirs, err := workspace.ParseDirs(paths)
	for _, w := range rootViolations(err) {
		found = append(found, w.At(positions[*w.Index]))
	}
	slices.SortStableFunc(found, func(a, b strictjson.Violation) int { return *a.Index - *b.Index })
	v.Add(found...)
	return dirs
}

// rootViolations returns the violations in an error of package workspace about a root set.
func rootViolations(err error) []strictjson.Violation {
	var roots workspace.RootErrors
	if !errors.As(err, &roots) {
		return nil
	}
	wrong := make([]strictjson.Violation, len(roots))
	for i, e := range roots {
		reason := strictjson.Reason(e.Reason) // workspace's reasons are among the protocol's
		switch {
		case e.Root < 0:
			wrong[i] = strictjson.NewViolation(protocol.AdditionalDirectories, nil, reason)
		case e.Root == 0:
			wrong[i] = strictjson.NewViolation("cwd", e.Path, reason)
		default:
			wrong[i] = strictjson.NewViolation(protocol.AdditionalDirectories, e.Path,
				reason).At(e.Root - 1)
		}
		if wrong[i].Expected = e.Detail; e.Reason == workspace.ReasonDenied {
			_, wrong[i].Expected = e.ProblemParts()
		}
	}
	return wrong
}
