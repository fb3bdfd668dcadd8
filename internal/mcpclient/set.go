package mcpclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/workspace"
)

// Set is the MCP servers of one session. It is safe for concurrent use; whoever makes one closes it.
type Set struct {
	starter *Starter
	options Options
	base    context.Context // ends with the set
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	stale   chan struct{} // asks watch to look at the roots now

	mu       sync.Mutex
	closed   bool
	closing  context.Context // Close's
	watching bool
	host     Host
	cwd      string            // in the client's spelling
	granted  mcproots.Snapshot // the session's roots
	visible  mcproots.Snapshot // those of them that the servers were told of
	members  []member
}

// member is a server and what the names of its tools begin with.
type member struct {
	*server
	prefix string
}

var _ backend.Tools = (*Set)(nil)

// NewSet makes a set without servers. They come with the first [Change].
func NewSet(starter *Starter, o Options) *Set {
	s := &Set{starter: starter, options: o.withDefaults(), stale: make(chan struct{}, 1)}
	s.base, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Close ends all servers with their process groups, and waits for them. When ctx ends they are killed. Everything
// fails with [backend.ErrClosed] from then on.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed, s.closing = true, ctx
	}
	members := s.members
	s.mu.Unlock()
	s.cancel(backend.ErrClosed)
	for _, m := range members {
		m.retire()
	}
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
	timer := time.NewTimer(killTime)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return errors.New("some MCP servers do not end, not even killed")
	}
}

// killTime is how long Close waits for processes that were killed.
const killTime = 2 * time.Second

// stopping is a context for ending a server.
func (s *Set) stopping() (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return context.WithTimeout(s.closing, s.options.StopTimeout)
	}
	return context.WithTimeout(context.WithoutCancel(s.base), s.options.StopTimeout)
}

// spawn runs f on a goroutine that Close waits for. It reports whether it did: not once the set is closed.
func (s *Set) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// place is the working directory and the roots of processes to be started.
func (s *Set) place() (cwd string, roots mcproots.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd, s.granted
}

// all are the servers, which are now watched over.
func (s *Set) all() ([]member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, backend.ErrClosed
	}
	if !s.watching && len(s.members) > 0 {
		s.watching = true
		s.running.Go(s.watch)
	}
	return s.members, nil
}

// say tells the user something outside of any call.
func (s *Set) say(text string) {
	s.mu.Lock()
	host := s.host
	s.mu.Unlock()
	if host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.base, sayTime)
	defer cancel()
	if err := host.Update(ctx, backend.Text(text+"\n\n")); err != nil && ctx.Err() == nil {
		s.options.Logger.Debug("a message about MCP servers was not shown", "error", err)
	}
}

// sayTime is how long a client that does not read is waited for.
const sayTime = 2 * time.Second

// Servers implements [backend.Tools].
func (s *Set) Servers() []backend.ServerStatus {
	s.mu.Lock()
	members := s.members
	s.mu.Unlock()
	all := make([]backend.ServerStatus, len(members))
	for i, m := range members {
		all[i] = m.status(m.prefix)
	}
	return all
}

// Change is what a lifecycle request makes of a set, once everything that can fail has succeeded (A12, M15). One that is
// not committed is dropped; it holds nothing.
type Change struct {
	set     *Set
	cwd     string
	roots   mcproots.Snapshot
	configs []Config
}

// Prepare makes a change to the roots of w and to configs, which is the complete list of servers, in order. It has no
// effect. It fails with a [*TooManyError], if w was closed, or with [backend.ErrClosed].
func (s *Set) Prepare(w *workspace.Workspace, configs []Config) (*Change, error) {
	if len(configs) > s.options.MaxServers {
		return nil, &TooManyError{Count: len(configs), Limit: s.options.MaxServers}
	}
	roots, err := mcproots.Take(w)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, backend.ErrClosed
	}
	return &Change{set: s, cwd: w.Roots().Cwd().String(), roots: roots, configs: configs}, nil
}

// Commit makes the change. It cannot fail, and waits for no server. From then on h is who is asked for permission and told
// of what happens. The session's earlier turn has ended; changes are committed in the order of their preparation.
func (c *Change) Commit(h Host) {
	s := c.set
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	kept, gone := c.apply()
	was := s.visible
	s.host, s.cwd, s.granted, s.visible = h, c.cwd, c.roots, c.roots
	s.mu.Unlock()
	for _, m := range gone {
		m.stop(errStopped)
		m.retire()
	}
	if was.Equal(c.roots) {
		return
	}
	lost := was.Missing(c.roots)
	for _, m := range kept {
		m.rootsChanged(lost)
	}
}

// apply puts the change's servers in the place of the set's. The caller holds the set's mu.
func (c *Change) apply() (kept, gone []member) {
	s := c.set
	old := append([]member(nil), s.members...)
	names := make([]string, len(c.configs))
	for i, config := range c.configs {
		names[i] = config.Name
	}
	prefixes := make([]string, len(c.configs))
	s.members = make([]member, len(c.configs))
	for i, config := range c.configs {
		for j, m := range old {
			if m.server != nil && m.config.equal(config) {
				s.members[i].server, prefixes[i], old[j].server = m.server, m.prefix, nil
				kept = append(kept, m)
				break
			}
		}
		if s.members[i].server == nil {
			s.members[i].server = s.newServer(config)
		}
	}
	for i, prefix := range distinctFrom(prefixes, names) {
		s.members[i].prefix = prefix
	}
	for _, m := range old {
		if m.server != nil {
			gone = append(gone, m)
		}
	}
	return kept, gone
}
