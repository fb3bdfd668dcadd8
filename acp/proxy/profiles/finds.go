package profiles

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/workspace"
)

// Matcher returns a function that reports whether the agent finds an instruction or a skill of the
// catalog itself, because of its path or because it finds a file that links to it or imports it.
// mode is how the agent learns of additional directories.
func (f Finds) Matcher(catalog *discovery.Catalog, mode RootsMode) func(discovery.Artifact) bool {
	inCwd, inRoots := f.InCwd, f.InRoots
	if inCwd == nil {
		inCwd = []string{"**"}
	}
	if mode == RootsByContext {
		inRoots = nil
	}
	fixed := slices.DeleteFunc(slices.Clone(inCwd),
		func(glob string) bool { return strings.Contains(glob, "*") })
	artifacts := slices.Concat(catalog.Of(discovery.Instruction), catalog.Of(discovery.Skill))
	isFixed := func(a discovery.Artifact) bool {
		return a.Root.Index == 0 && a.Size > 0 && matchesAny(fixed, a)
	}
	if !slices.ContainsFunc(artifacts, isFixed) {
		inCwd = slices.Concat(inCwd, f.Otherwise)
	}
	byPath := func(a discovery.Artifact) bool {
		if a.Root.Index == 0 {
			return matchesAny(inCwd, a)
		}
		return matchesAny(inRoots, a)
	}
	found := make(map[workspace.Ref]bool)
	for _, a := range artifacts {
		if byPath(a) && a.Size > 0 {
			found[a.Ref] = true
			for _, imported := range a.Imports {
				found[imported.Ref] = true
			}
		}
	}
	return func(a discovery.Artifact) bool { return byPath(a) || found[a.Ref] }
}

// matchesAny reports whether one of globs matches the path of an artifact in its root.
func matchesAny(globs []string, a discovery.Artifact) bool {
	rel, err := filepath.Rel(a.Root.Dir.String(), a.Path)
	return err == nil && slices.ContainsFunc(globs, func(glob string) bool {
		matched, _ := doublestar.Match(glob, filepath.ToSlash(rel))
		return matched
	})
}
