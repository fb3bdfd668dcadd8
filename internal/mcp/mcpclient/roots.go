package mcpclient

import (
	"strings"

	"github.com/acp-agent/acp-agent/internal/mcp/mcproots"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// currentFolders returns the session's folders.
func (s *Set) currentFolders() folders {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folders
}

// watchRoots checks the roots periodically.
func (s *Set) watchRoots() {
	for range pause.Every(s.ctx, s.options.limits.CheckRoots) {
		s.checkRoots()
	}
}

// checkRoots tells the servers and the user about roots that have disappeared or come back.
func (s *Set) checkRoots() {
	s.mu.Lock()
	roots, before := s.folders.roots, s.visible
	s.mu.Unlock()
	now := roots.Existing()
	s.mu.Lock()
	if !s.folders.roots.Equal(roots) || !s.visible.Equal(before) || now.Equal(before) {
		s.mu.Unlock()
		return
	}
	s.visible = now
	servers := s.servers
	s.mu.Unlock()
	if gone := before.Missing(now); len(gone) > 0 {
		s.options.Logger.Warn("roots vanished; the session's MCP servers no longer see them",
			"roots", len(gone))
		s.showMessage("No longer there: " + rootPaths(gone) +
			". The session's MCP servers no longer see it.")
	}
	if back := now.Missing(before); len(back) > 0 {
		s.showMessage("There again: " + rootPaths(back) +
			". The session's MCP servers see it again.")
	}
	for _, one := range servers {
		one.announceRoots()
	}
}

// rootPaths lists roots for a person.
func rootPaths(roots []mcproots.Root) string {
	paths := make([]string, len(roots))
	for i, r := range roots {
		paths[i] = text.Printable(r.Real.String())
	}
	return strings.Join(paths, ", ")
}
