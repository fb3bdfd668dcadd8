package discovery

import (
	"cmp"
	"slices"
	"strings"
)

// byRank compares artifacts of one root: by convention, then by path.
func byRank(a, b *Artifact) int {
	return cmp.Or(cmp.Compare(a.row.rank, b.row.rank), strings.Compare(a.rel, b.rel))
}

// resolveConflicts decides which artifacts are active. all is ordered by root and rank; if
// artifacts exclude each other, the first is active.
func resolveConflicts(all []Artifact) {
	shadowSameFiles(all)
	// A directory has one of AGENTS.md and its alternatives.
	keepFirst(all, func(a *Artifact) (key [2]string, ok bool) {
		return [2]string{a.Root.Dir.String(), a.dir}, a.row.one
	}, func(winner, _ *Artifact) string {
		return "a directory has one instruction file, and " + winner.Name + " takes precedence"
	})
	// Skills and commands share the names of slash commands; servers have their own. Instructions
	// have no names.
	keepFirst(all, func(a *Artifact) (key [2]string, ok bool) {
		kind := Command
		if a.Kind == MCPServer {
			kind = MCPServer
		}
		return [2]string{string(kind), a.Name}, a.Kind != Instruction
	}, func(winner, a *Artifact) string { return winner.precedence(a) + ": " + winner.Path })
}

// keepFirst keeps the first active artifact of those with the same key. why says why the winner
// shadows another one.
func keepFirst(
	all []Artifact, keyOf func(*Artifact) (key [2]string, ok bool),
	why func(winner, a *Artifact) string,
) {
	first := make(map[[2]string]*Artifact)
	for i := range all {
		a := &all[i]
		key, ok := keyOf(a)
		if !ok || a.State != Active {
			continue
		}
		if winner, taken := first[key]; taken {
			a.shadow(winner, why(winner, a))
		} else {
			first[key] = a
		}
	}
}

// shadowSameFiles keeps one artifact of each file that was found twice, through links or through
// two roots.
func shadowSameFiles(all []Artifact) {
	type key struct {
		kind Kind
		root int
		rel  string
	}
	first := make(map[key]*Artifact, len(all))
	for i := range all {
		a := &all[i]
		if a.Ref.Rel() == "" {
			continue
		}
		k := key{a.Kind, a.Ref.Root().Index, a.Ref.Rel()}
		switch winner, taken := first[k]; {
		case !taken, winner.State == Unused && a.State == Active:
			first[k] = a
		case winner.Path != a.Path || winner.Root != a.Root: // a file can configure several servers
			a.shadowSameFile(winner)
		}
	}
}

// Losers returns the skills and commands that are not used because the active artifact a has their
// name.
func (c *Catalog) Losers(a Artifact) []Artifact {
	return filter(c.artifacts, func(other *Artifact) bool {
		return (other.Kind == Skill || other.Kind == Command) && other.State == Shadowed &&
			other.ShadowedBy == a.Path && other.Ref != a.Ref
	})
}

// precedence says why a precedes other.
func (a *Artifact) precedence(other *Artifact) string {
	switch {
	case a.Root.Index != other.Root.Index:
		return "an earlier folder has one of this name"
	case a.Pattern != other.Pattern:
		return a.Pattern + " takes precedence in the same folder"
	default:
		return "its path comes first for the same pattern"
	}
}

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
