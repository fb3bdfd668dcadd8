package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/content"
	"github.com/acp-agent/acp-agent/acp/internal/folders"
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
	folders folders.Set
	servers []mcpclient.Config
	rest    backend.Raw // the params without sessionId, with the folders and servers
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
	p := sessionParams{rest: params.Without(protocol.SessionID)}
	switch given := params.Field(protocol.SessionID); id {
	case required:
		p.id = sessionstore.ID(v.Text(given))
	case optional:
		given, _ := v.OptionalText(given)
		p.id = sessionstore.ID(given)
	}
	p.folders = decodeFolders(&v, params)
	p.servers = a.decodeServers(&v, params.Field(protocol.MCPServers), servers)
	content.CheckSystemPrompt(&v, params.Field(protocol.SystemPrompt), a.info().SystemPrompts)
	return p, v.Err()
}

// decodeFolders reads cwd and additionalDirectories.
func decodeFolders(v *strictjson.Violations, params strictjson.Object) folders.Set {
	cwd, wrong := decodeDir(params.Field("cwd"))
	for i, w := range wrong {
		if w.Reason == strictjson.Required || w.Reason == strictjson.Null {
			wrong[i] = w.Expecting("an absolute path")
		}
	}
	v.Add(wrong...)
	return decodeAdditional(v, cwd, params.Field(protocol.AdditionalDirectories))
}

// decodeAdditional reads additionalDirectories if it is present. Every entry is checked.
func decodeAdditional(v *strictjson.Violations, cwd workspace.Dir, f strictjson.Field) folders.Set {
	var dirs []workspace.Dir
	if f.Present() {
		for _, item := range v.Items(f) {
			dir, wrong := decodeDir(item)
			v.Add(wrong...)
			dirs = append(dirs, dir)
		}
	}
	return folders.Requested(cwd, dirs, f.Present())
}

// decodeDir reads the path of a directory, or returns what is wrong with it.
func decodeDir(f strictjson.Field) (workspace.Dir, []strictjson.Violation) {
	path, wrong := f.Text()
	if wrong != nil {
		return workspace.Dir{}, wrong
	}
	dir, err := workspace.ParseDir(path)
	problems, _ := errors.AsType[workspace.RootErrors](err)
	for _, p := range problems { // their reasons are among the protocol's
		wrong = append(wrong, f.Refuse(strictjson.Reason(p.Reason)))
	}
	return dir, wrong
}
