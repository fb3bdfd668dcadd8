package permission

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/links"
	"github.com/acp-agent/acp-agent/internal/permission/commandline"
	"github.com/acp-agent/acp-agent/workspace"
)

// readOnlyRule denies changes in a root that may only be read, for everybody. It asks about
// commands and tools that name something in it and are not known to read only. Users write no such
// rule: the grant of the root is one.
type readOnlyRule struct {
	root  workspace.Root
	roots []workspace.Root // of the session
}

// ReadOnlyRules returns the rules that keep the roots of w as they are that may only be read.
func ReadOnlyRules(w *workspace.Workspace) (deny []Rule) {
	roots := w.Opened()
	for _, root := range roots {
		if root.Grant == workspace.ReadOnly {
			deny = append(deny, Rule{verb: Edit, matcher: readOnlyRule{root, roots}})
		}
	}
	return deny
}

// String returns the rule that says the same, but for roots in the root.
func (r readOnlyRule) String() string { return "outside " + r.root.Real.String() }

func (r Rule) mayBreakGrant(a *prepared) bool { return is[readOnlyRule](r) && r.mayTouch(a) }

func (r readOnlyRule) allows(Action) bool { return false }

func (r readOnlyRule) touches(a *prepared) bool {
	if a.Verb == Edit {
		return slices.ContainsFunc(a.Files, r.has)
	}
	return slices.ContainsFunc(a.said, func(s saying) bool {
		return slices.ContainsFunc(s.line.Any, func(words []string) bool { return r.changes(a, words) })
	})
}

func (r readOnlyRule) mayTouch(a *prepared) bool {
	passed := slices.ContainsFunc(a.Hints.Files, r.has)
	named := passed || slices.ContainsFunc(a.Files, r.has) || a.Where.Root == r.root.Real.String()
	switch a.Verb {
	case Edit: // what it changes itself is denied
		return passed
	case Run:
		return named && !a.readsOnly()
	case Tool:
		return named && !a.Tool.ReadOnly
	}
	return named && a.Verb == ""
}

// has reports whether a file, or the link that names it, is in the root, and in no root in it. A
// disk may take other spellings for the same.
func (r readOnlyRule) has(f File) bool {
	dir, name := filepath.Split(strings.TrimRight(filepath.ToSlash(f.Path), "/"))
	return r.keeps(cmp.Or(f.Real, links.RealPath(f.Path))) ||
		r.keeps(filepath.Join(links.RealPath(dir), name))
}

// keeps reports whether a path may be in the root, and is in no root in it.
func (r readOnlyRule) keeps(at string) bool {
	top := r.root.Real.String()
	return mayBeBelow(top, at) && !slices.ContainsFunc(r.roots, func(other workspace.Root) bool {
		inner := other.Real.String()
		return inner != top && mayBeBelow(top, inner) && isBelow(inner, at)
	})
}

// names reports whether one of some words of a command names something in the root, or a folder
// that has it.
func (r readOnlyRule) names(a *prepared, words []string) bool {
	return slices.ContainsFunc(slices.Concat(a.Files, a.Hints.Files), func(f File) bool {
		above := f.Real != "" && isBelow(f.Real, r.root.Real.String())
		return slices.Contains(words, f.Word) && f.Word != "" && (above || r.has(f))
	})
}

// changes reports whether the words of a command change something in the root.
func (r readOnlyRule) changes(a *prepared, words []string) bool {
	program, words := programOf(words)
	changes, copies := commandline.In("@changing", program), commandline.In("@copying", program)
	isOption := func(prefixes ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(word, p) })
		})
	}
	switch {
	case program == "git":
		reads := func(word string) bool { return commandline.In("@git-reading", word) }
		return !slices.ContainsFunc(words, reads) &&
			(a.Where.Root == r.root.Real.String() || r.names(a, words))
	case program == "find":
		return isOption("-delete", "-exec", "-ok", "-fprint", "-fls") && r.names(a, words)
	case program == "sed" || program == "perl" || program == "sort":
		return isOption("-i", "--in-place", "-pi", "-o", "--output") && r.names(a, words)
	case copies && !isOption("-t", "--target"):
		return len(words) > 0 && r.names(a, words[len(words)-1:])
	}
	return (changes || copies) && r.names(a, words)
}

// readsOnly reports whether a line is commands that only read what their words name.
func (a *prepared) readsOnly() bool {
	if a.Command.Known != nil && a.Command.Known[0] != "find" && a.Hints.Reads != nil {
		return true
	}
	for _, command := range a.said[0].line.Commands {
		program, rest := programOf(command)
		known := commandline.In("@reading", program) ||
			a.Command.Known != nil && slices.Contains([]string{"find", "git", "sed", "sort"}, program)
		if !known || program != path.Base(command[0]) || slices.ContainsFunc(rest, func(word string) bool {
			return strings.ContainsAny(word, "$`")
		}) {
			return false
		}
	}
	return a.Command.Line != ""
}

// programOf returns the name of the program that a command runs, and the words behind it.
func programOf(words []string) (program string, rest []string) {
	for i, word := range words {
		program = strings.ToLower(commandline.Program(word))
		if !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") &&
			!commandline.In("@starting", program) {
			return program, words[i+1:]
		}
	}
	return "", nil
}
