package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// setupMembers are the members of params that say where a session works and what it starts.
var setupMembers = []string{"cwd", protocol.AdditionalDirectories, protocol.MCPServers}

// namesSetup reports whether params have one of setupMembers, in any case.
func namesSetup(raw json.RawMessage) bool {
	object, _ := strictjson.ParseObject(raw)
	for name := range object.All() {
		if slices.ContainsFunc(setupMembers, func(setup string) bool {
			return strings.EqualFold(setup, name)
		}) {
			return true
		}
	}
	return false
}

// setupCheck returns a function that checks the folders and MCP servers in the params of a request
// that the adapter does not know as it would check those of session/new. It is nil if there are
// none.
func (a *adapter) setupCheck(r *jsonrpc.Request) (check func(context.Context) error, err error) {
	if methodOf(r.Method).shape != nil || !namesSetup(r.Params) {
		return nil, nil
	}
	params, err := parseParams(r.Params, newShape)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		var (
			v strictjson.Violations
			p sessionParams
		)
		p.servers = a.decodeServers(&v, params.Field(protocol.MCPServers), optional)
		for _, name := range setupMembers[:2] {
			if params.Field(name).Present() {
				p.folders = decodeFolders(&v, params)
				break
			}
		}
		if err := v.Err(); err != nil {
			return err
		}
		return a.checkSetup(ctx, p)
	}, nil
}

// checkSetup checks roots and MCP servers that are passed to the backend without opening a session.
func (a *adapter) checkSetup(ctx context.Context, p sessionParams) error {
	for _, server := range p.servers {
		if err := a.applyPolicy(&server); err != nil {
			return err
		}
	}
	if p.folders.Cwd().IsZero() {
		return nil
	}
	return a.tasks.OnDisk(ctx, func() error {
		w, _, err := p.folders.Open(ctx, a.options.Workspace)
		if err != nil {
			return err
		}
		return w.Close()
	})
}
