package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcpclient"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// bridge is a session's MCP servers on their way from one activation to the next: prepared among what can fail, and
// changed by commit (A12, M15). Its zero value is that of a runtime that connects them itself.
type bridge struct {
	set     *mcpclient.Set
	change  *mcpclient.Change
	configs []mcpclient.Config
	made    bool // the set is this activation's own
}

// bridgeTo prepares the servers of an activation on w, with those that the live session has.
func (a *agent) bridgeTo(id sessionstore.ID, w *workspace.Workspace, before *session, configs []mcpclient.Config) (bridge, error) {
	if a.init.connects() == backend.BackendConnects {
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
		o := a.options.tuning.MCP
		o.Logger = o.Logger.With("session", id)
		b.set, b.made = mcpclient.NewSet(a.options.tuning.Starter, o), true
	}
	var err error
	b.change, err = prepareServers(b.set, w, b.configs)
	return b, err
}

// prepareServers prepares a change of a set. Too many servers are the client's fault.
func prepareServers(set *mcpclient.Set, w *workspace.Workspace, configs []mcpclient.Config) (*mcpclient.Change, error) {
	change, err := set.Prepare(w, configs)
	if many := (*mcpclient.TooManyError)(nil); errors.As(err, &many) {
		err = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", many)
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
	set *mcpclient.Set // nil if the runtime connects them

	given []mcpclient.Config // the client's

	mu     sync.Mutex
	found  []mcpclient.Config // those that were found in the roots, and allowed
	passed bool               // to the activation that takes the session's place
}

// tools are the tools of the servers.
func (s *serving) tools() backend.Tools {
	if s.set == nil {
		return backend.NoTools{}
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
