package discovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/acp-agent/acp-agent/workspace"
)

// For returns the instructions that apply to path in addition to those of whole roots: rules whose
// globs match path, and the instructions in the directories between the root that contains path
// (the deepest, if roots are nested) and path. It reads these directories when it is called. path
// need not exist. Artifacts that are not active are in the list, with the reason. A limit that was
// reached is an invalid artifact whose Reason says so.
//
// [Catalog.Assemble] returns the text of the list. For fails if path is outside the roots, ctx
// ends, or the scan takes too long.
func (c *Catalog) For(ctx context.Context, path string) ([]Artifact, error) {
	list, err := leadingTo(ctx, c.ws, c.limits, path, c.artifacts, nil)
	return slices.DeleteFunc(list, func(a Artifact) bool { return a.Kind != Instruction }), err
}

// leadingTo returns what applies to path: the rules in known of the root that contains path, what
// the directory of that root has for the rows ofRoot, and the artifacts of the directories between
// it and path. known are artifacts of the roots.
func leadingTo(
	ctx context.Context, ws *workspace.Workspace, l limits, path string, known []Artifact,
	ofRoot []row,
) ([]Artifact, error) {
	root, dirs, rel, err := locate(ws, path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.time, errTimeout)
	defer cancel()
	dir, err := ws.OpenDir(root.Dir.String())
	if err != nil {
		return nil, err
	}
	s := newScanner(ws, root, l)
	at := newDirectory(dir, nil, ".")
	defer func() {
		for ; at != nil; at = at.parent {
			_ = at.dir.Close()
		}
	}()
	list := filter(known, func(a *Artifact) bool {
		return a.Root.Index == root.Index && a.Applies.Mode == ByPath
	})
	if len(ofRoot) > 0 {
		list = append(list, s.scanOne(ctx, ofRoot, at, known)...)
	}
	below := rowsThat(func(r row) bool { return r.below })
	for _, name := range dirs {
		dir, err := at.dir.OpenDir(name)
		if err != nil {
			break // it has been removed
		}
		at = newDirectory(dir, at, name)
		list = append(list, s.scanOne(ctx, below, at, known)...)
	}
	for _, l := range s.reached {
		list = append(list, Artifact{Kind: Instruction, Name: l.pattern, Root: l.Root,
			Pattern: l.pattern, Path: l.path, State: Invalid, Reason: l.String(), rel: "."})
	}
	list = slices.DeleteFunc(list, func(a Artifact) bool {
		return ctx.Err() != nil || a.Applies.Mode == ByPath && !a.appliesTo(rel)
	})
	return list, context.Cause(ctx)
}

// maxNestedDirs is the most directories of one root that Catalog.Below examines.
const maxNestedDirs = 500

// Below returns the instructions of directories below the roots, by root and then from the top
// down, each path once, including those that are not active. It examines a limited number of
// directories, and no hidden ones; complete reports whether it examined all. A directory that
// cannot be opened counts as empty.
func (c *Catalog) Below(ctx context.Context) (list []Artifact, complete bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.time, errTimeout)
	defer cancel()
	complete = true
	seen := make(map[string]bool) // paths, as roots can overlap
	for _, root := range c.Roots() {
		found, all := c.nestedIn(ctx, root)
		for _, a := range found {
			if !seen[a.Path] && a.Kind == Instruction {
				list = append(list, a)
			}
			seen[a.Path] = true
		}
		complete = complete && all
	}
	return list, complete
}

// nestedIn is Below for one root.
func (c *Catalog) nestedIn(
	ctx context.Context, root workspace.Root,
) (list []Artifact, complete bool) {
	below := rowsThat(func(r row) bool { return r.below })
	s := newScanner(c.ws, root, c.limits)
	dirs, complete := []string{"."}, true
	for i := 0; i < len(dirs); i++ {
		dir, err := c.ws.OpenDir(s.path(dirs[i]))
		if err != nil {
			continue
		}
		at := newDirectory(dir, nil, dirs[i])
		entries, err := at.list(ctx)
		complete = complete && err == nil
		if dirs[i] != "." {
			list = append(list, s.scanOne(ctx, below, at, c.artifacts)...)
		}
		for _, e := range entries {
			if e.Type.IsDir() && !strings.HasPrefix(e.Name, ".") && e.Name != "node_modules" {
				if len(dirs) > maxNestedDirs {
					complete = false
					break
				}
				dirs = append(dirs, join(dirs[i], e.Name))
			}
		}
		_ = dir.Close()
	}
	return list, complete && len(s.reached) == 0
}

// Dir returns the directory that an instruction is for, as the client spells the root.
func (a Artifact) Dir() string {
	if a.dir == "." {
		return a.Root.Dir.String()
	}
	return filepath.Join(a.Root.Dir.String(), filepath.FromSlash(a.dir))
}

// locate finds the root that contains path, the names of the existing directories between the root
// and path, and path as slash-separated from the root.
func locate(
	ws *workspace.Workspace, path string,
) (root workspace.Root, dirs []string, rel string, err error) {
	var missing string
	for {
		dir, err := ws.OpenDir(path)
		if err == nil {
			ref := dir.Ref()
			_ = dir.Close()
			if ref.Rel() != "." {
				dirs = strings.Split(ref.Rel(), "/")
			}
			return ref.Root(), dirs, strings.TrimPrefix(ref.Rel()+missing, "./"), nil
		}
		parent := filepath.Dir(path)
		if parent == path || (!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)) {
			return root, nil, "", err
		}
		missing = "/" + filepath.Base(path) + missing
		path = parent
	}
}

// scanOne returns what a directory has for some rows. It resolves conflicts between the artifacts
// there, and with those that are known.
func (s *scanner) scanOne(
	ctx context.Context, rows []row, at *directory, known []Artifact,
) []Artifact {
	s.artifacts = nil
	s.scanDir(ctx, rows, at)
	slices.SortStableFunc(s.artifacts, byRank)
	list := make([]Artifact, len(s.artifacts))
	for i, a := range s.artifacts {
		s.checkOwner(a, at.rel)
		list[i] = *a
	}
	resolveConflicts(list)
	for i := range list {
		a := &list[i]
		for j := range known {
			if same := &known[j]; a.State == Active && same.Kind == a.Kind &&
				same.Ref.Rel() != "" && same.Ref == a.Ref {
				a.shadowSameFile(same)
			}
		}
	}
	return list
}
