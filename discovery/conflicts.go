package discovery

import (
	"cmp"
	"fmt"
	"strings"
)

// byRank orders the artifacts of a root: by the row of the table, then by the path.
func byRank(a, b *Artifact) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.rel, b.rel))
}

// resolveConflicts decides which artifacts count, in the order of the roots, and of their rank in each. Of what cannot all count, the
// first does.
func resolveConflicts(all []Artifact) {
	onceEach(all)
	onePerDirectory(all)
	oneOfEachName(all)
}

// onceEach: a file that is found in two ways, by links or through two roots, counts once.
func onceEach(all []Artifact) {
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
		case !taken:
			first[k] = a
		case winner.Path != a.Path || winner.Root != a.Root: // a file of servers makes several artifacts
			a.shadow(winner, fmt.Sprintf("it is the same file as %s, which root %d has", winner.Path, winner.Root.Index))
		}
	}
}

// onePerDirectory: of AGENTS.md and its like a directory has one.
func onePerDirectory(all []Artifact) {
	type key struct {
		root  int
		level string
	}
	first := make(map[key]*Artifact)
	for i := range all {
		a := &all[i]
		if a.State != Active || !a.oneOnly {
			continue
		}
		k := key{a.Root.Index, a.level}
		if winner, taken := first[k]; taken {
			a.shadow(winner, "a directory has one instruction file, and "+winner.Name+" comes first")
		} else {
			first[k] = a
		}
	}
}

// oneOfEachName: skills and commands share the names that are typed after a slash, servers have their own.
// Instructions are all read.
func oneOfEachName(all []Artifact) {
	type key struct {
		server bool
		name   string
	}
	first := make(map[key]*Artifact, len(all))
	for i := range all {
		a := &all[i]
		if a.State != Active || a.Kind == Instruction {
			continue
		}
		k := key{a.Kind == MCPServer, a.Name}
		if winner, taken := first[k]; taken {
			a.shadow(winner, winner.precedence(a)+": "+winner.Path)
		} else {
			first[k] = a
		}
	}
}

// precedence says why a comes before other.
func (a *Artifact) precedence(other *Artifact) string {
	switch {
	case a.Root.Index != other.Root.Index:
		return "an earlier root has one of this name"
	case a.Place != other.Place:
		return a.Place + " comes first in the same root"
	default:
		return "its path comes first in the same place"
	}
}
