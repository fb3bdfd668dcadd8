package mcpclient

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/mcproots"
	"github.com/acp-agent/acp-agent/workspace"
)

// Change is what a lifecycle request makes of a set, once everything that can fail has succeeded (A12, M15). One that is
// not committed is dropped; it holds nothing.
type Change struct {
	set     *Set
	cwd     string
	roots   mcproots.Snapshot
	configs []Config
}

// Prepare makes a change to the roots of w and to configs, which is the complete list of servers, in order. It has no
// effect. It fails with a [*TooManyError], if w was closed, or with [runtime.ErrClosed].
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

// rootsChanged tells the server of new roots, or has it connected anew (M3).
func (s *server) rootsChanged(lost []mcproots.Root) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return
	}
	l := s.link
	if s.outdated(l, lost) {
		// Whoever calls now waits for the new connection.
		s.link = nil
		s.turn(backend.ServerStarting, nil)
		select {
		case <-s.restarts:
		default:
		}
		s.restarts <- lost
		return
	}
	if l != nil {
		l.tell()
	}
}

// outdated reports whether a connection cannot go on with the new roots. l is nil for one that is just being made,
// of which nobody can say yet what it was told.
func (s *server) outdated(l *link, lost []mcproots.Root) bool {
	switch {
	case s.config.Transport == Stdio && s.config.Policy.Templates == On:
		return true
	case len(lost) == 0 || s.config.Policy.OnShrink == Notify || !s.config.rootsOn():
		return false
	case s.config.Transport != Stdio || l == nil:
		return true
	default:
		told, _ := l.knows()
		return told != nil
	}
}

// retire marks a server that was stopped before it was ever started.
func (s *server) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.turn(backend.ServerStopped, nil)
	}
}
