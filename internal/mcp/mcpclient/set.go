package mcpclient

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set manages the MCP servers of one session. It is safe for concurrent use and must be closed.
type Set struct {
	starting chan struct{} // has a value for each server that is starting
	options  Options
	ctx      context.Context // ends when the set is closed, with mu held
	cancel   context.CancelCauseFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	stopping context.Context // in which servers are stopped, that of Close once it was called
	watching sync.Once       // starts watchRoots
	host     Host
	folders  folders
	visible  mcproots.Snapshot // the roots that the servers were last told about
	servers  []*server
}

// folders are the folders of a session.
type folders struct {
	ws       *workspace.Workspace
	roots    mcproots.Snapshot // of ws
	replaced chan struct{}     // closed when the session has other roots
}

// NewSet returns a set without servers. They come with the first [Change]. At most cap(starting)
// servers of all sets with this channel start at once.
func NewSet(starting chan struct{}, o Options) *Set {
	s := &Set{starting: starting, options: o.withDefaults(), stopping: context.Background()}
	s.folders.replaced = make(chan struct{})
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Close stops all servers with their process groups and waits for them. When ctx ends, they are
// killed. All methods fail with [acpmcp.ErrClosed] from then on.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.ctx.Err() == nil {
		s.stopping = ctx
		s.cancel(acpmcp.ErrClosed)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return nil
	case <-time.After(killTimeout):
		return errors.New("some MCP servers are still running although they were killed")
	}
}

// killTimeout is how long Close waits for processes that were killed.
const killTimeout = 2 * time.Second

// stopContext returns a context for stopping a server.
func (s *Set) stopContext() (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return context.WithTimeout(s.stopping, stopTimeout)
}

// spawn runs f on a goroutine that Close waits for. It returns false, without running f, once the
// set is closed.
func (s *Set) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.running.Go(f)
	return true
}

// use returns the servers, and makes sure that the roots are watched.
func (s *Set) use() ([]*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, acpmcp.ErrClosed
	}
	if len(s.servers) > 0 {
		s.watching.Do(func() { s.running.Go(s.watchRoots) })
	}
	return s.servers, nil
}

// find returns the server with the given prefix, otherwise with the given name. The error is
// notFound if there is none.
func (s *Set) find(name string, notFound error) (*server, error) {
	servers, err := s.use()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(servers, func(one *server) bool { return one.prefix == name })
	if i < 0 {
		i = slices.IndexFunc(servers, func(one *server) bool { return one.config.Name == name })
	}
	if i < 0 {
		return nil, notFound
	}
	return servers[i], nil
}

// Servers returns the status of each server, in the order of their configurations.
func (s *Set) Servers() []acpmcp.Status {
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	all := make([]acpmcp.Status, len(servers))
	for i, one := range servers {
		all[i] = one.status()
	}
	return all
}

// openHost returns the host while the set is open.
func (s *Set) openHost() (Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.host == nil {
		return nil, acpmcp.ErrClosed
	}
	return s.host, nil
}

// showTimeout is how long showMessage waits for a client that does not read.
const showTimeout = 2 * time.Second

// showMessage shows the user a message.
func (s *Set) showMessage(message string) {
	host, err := s.openHost()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, showTimeout)
	defer cancel()
	if err := host.Show(ctx, message); err != nil && ctx.Err() == nil {
		s.options.Logger.Debug("could not show a message about MCP servers", "error", err)
	}
}

// Change is a change of a set's roots and servers that has been checked but not made. It may be
// dropped.
type Change struct {
	set     *Set
	folders folders
	configs []Config
}

// Prepare checks a change to the roots of w and to configs, the complete and ordered list of
// servers. It has no effect. The error is a [*TooManyError], [acpmcp.ErrClosed], or
// [workspace.ErrClosed] if w was closed.
func (s *Set) Prepare(w *workspace.Workspace, configs []Config) (*Change, error) {
	if len(configs) > maxServers {
		return nil, &TooManyError{Count: len(configs), Limit: maxServers}
	}
	roots, err := mcproots.Take(w)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, acpmcp.ErrClosed
	}
	return &Change{set: s, folders: folders{w, roots, make(chan struct{})}, configs: configs}, nil
}

// Commit makes the change. From then on h answers the servers. Commit cannot fail and does not wait
// for servers. Changes are committed in the order in which they were prepared.
func (c *Change) Commit(h Host) {
	s := c.set
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	kept, removed := c.replaceServersLocked()
	if slices.Equal(grantedRoots(s.folders.roots), grantedRoots(c.folders.roots)) {
		c.folders.replaced = s.folders.replaced
	} else {
		close(s.folders.replaced)
	}
	changed := !s.visible.Equal(c.folders.roots)
	s.host, s.folders, s.visible = h, c.folders, c.folders.roots
	s.mu.Unlock()
	for _, one := range removed {
		one.stop(errStopped)
	}
	for _, one := range kept {
		one.foldersChanged(changed)
	}
}

// replaceServersLocked replaces the set's servers, keeping those whose configuration is unchanged.
func (c *Change) replaceServersLocked() (kept, removed []*server) {
	s := c.set
	removed = slices.Clone(s.servers)
	servers := make([]*server, len(c.configs))
	names, prefixes := make([]string, len(c.configs)), make([]string, len(c.configs))
	for i, config := range c.configs {
		names[i] = config.Name
		j := slices.IndexFunc(removed, func(one *server) bool { return one.config.equal(config) })
		if j < 0 {
			continue
		}
		servers[i], prefixes[i] = removed[j], removed[j].prefix
		kept = append(kept, removed[j])
		removed = slices.Delete(removed, j, j+1)
	}
	for i, prefix := range uniqueNames(names, prefixes) {
		if servers[i] == nil {
			servers[i] = s.newServer(c.configs[i], prefix)
		}
	}
	s.servers = servers
	return kept, removed
}
