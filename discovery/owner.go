package discovery

import (
	"slices"
	"strings"
)

// checkOwner marks an active artifact of a directory, which is slash-separated from the root, as
// unused if the directory was not written for those who work in the root: dependencies, what git
// keeps or ignores, and copies of the folder for other sessions.
func (s *scanner) checkOwner(a *Artifact, dir string) {
	if a.State != Active {
		return
	}
	names := strings.Split(dir, "/")
	for i, name := range names {
		if isForeign(name) || name == "worktrees" && i > 0 && names[i-1] == ".claude" {
			a.unused(strings.Join(names[:i+1], "/") + " has files that do not belong to this folder")
			return
		}
	}
	if s.ignored == nil {
		s.ignored = s.ws.IgnoredDirs(s.root)
	}
	if first := s.ignored.First(dir); first != "" {
		a.unused("git ignores " + first)
	}
}

// isForeign reports whether a directory of this name holds dependencies, or what a program for
// version control keeps.
func isForeign(name string) bool {
	return slices.Contains([]string{".git", ".hg", ".svn", "node_modules", "bower_components",
		".venv", "venv", "site-packages", "vendor"}, name)
}
