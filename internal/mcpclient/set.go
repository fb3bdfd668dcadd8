package mcpclient

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
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
// fails with [runtime.ErrClosed] from then on.
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

// Servers implements [runtime.Tools].
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

// status is the server as a person is told of it.
func (s *server) status(prefix string) backend.ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := backend.ServerStatus{
		Name: s.config.Name, Prefix: prefix, Transport: string(s.config.Transport), State: s.state, Err: s.err,
		Restarts: s.count, RootsDeclared: s.config.rootsOn(),
	}
	for _, f := range s.warnings {
		status.Warnings = append(status.Warnings, string(f))
	}
	if s.link == nil {
		return status
	}
	r := s.link.session.InitializeResult()
	status.Revision, status.Modern = r.ProtocolVersion, s.link.session.Modern()
	if r.ServerInfo != nil {
		status.Product = named(r.ServerInfo.Name) + " " + named(r.ServerInfo.Version)
	}
	status.Told, status.ToldAt = s.link.knows()
	return status
}
