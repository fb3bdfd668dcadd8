package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/mcpservers"
	"github.com/acp-agent/acp-agent/acp/runtime"
	"github.com/acp-agent/acp-agent/acp/wire"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// bridge is a session's MCP servers on their way from one activation to the next: prepared among what can fail, and
// changed by commit (A12, M15). Its zero value is that of a runtime that connects them itself.
type bridge struct {
	set     *mcpservers.Set
	change  *mcpservers.Change
	configs []mcpservers.Config
	made    bool // the set is this activation's own
}

// bridgeTo prepares the servers of an activation on w, with those that the live session has.
func (a *agent) bridgeTo(id sessionstore.ID, w *workspace.Workspace, before *session, configs []mcpservers.Config) (bridge, error) {
	if a.init.connects() == runtime.RuntimeConnects {
		return bridge{}, nil
	}
	b := bridge{configs: configs}
	if a.options.MCPPolicy != nil {
		for i := range b.configs {
			b.configs[i].Policy = a.options.MCPPolicy(b.configs[i].Name)
		}
	}
	if before != nil {
		b.set = before.servers.set
	} else {
		o := a.options.MCP
		o.Logger = o.Logger.With("session", id)
		b.set, b.made = mcpservers.NewSet(a.options.Starter, o), true
	}
	var err error
	b.change, err = prepareServers(b.set, w, b.configs)
	return b, err
}

// prepareServers prepares a change of a set. Too many servers are the client's fault.
func prepareServers(set *mcpservers.Set, w *workspace.Workspace, configs []mcpservers.Config) (*mcpservers.Change, error) {
	change, err := set.Prepare(w, configs)
	if many := (*mcpservers.TooManyError)(nil); errors.As(err, &many) {
		err = wire.Errorf(wire.CodeInvalidParams, "%v", many)
	}
	return change, err
}

// commit changes the servers. From then on they speak to h.
func (b *bridge) commit(h *host) {
	if b.change != nil {
		b.change.Commit(h)
	}
}

// abandon ends a set that no session has, of an activation that is not committed.
func (b *bridge) abandon(ctx context.Context) error {
	if !b.made {
		return nil
	}
	return b.set.Close(ctx)
}

// serving is the MCP servers of an active session.
type serving struct {
	set *mcpservers.Set // nil if the runtime connects them

	given []mcpservers.Config // the client's

	mu     sync.Mutex
	found  []mcpservers.Config // those that were found in the roots, and allowed
	passed bool                // to the activation that takes the session's place
}

// tools are the tools of the servers.
func (s *serving) tools() runtime.Tools {
	if s.set == nil {
		return runtime.NoTools{}
	}
	return s.set
}

// pass leaves the servers to the next activation. What this one has begun to change is changed before it returns, and
// nothing after that.
func (s *serving) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = true
}

// close ends the servers, unless they were passed on.
func (s *serving) close(ctx context.Context) error {
	s.mu.Lock()
	passed := s.passed
	s.mu.Unlock()
	if passed || s.set == nil {
		return nil
	}
	return s.set.Close(ctx)
}
