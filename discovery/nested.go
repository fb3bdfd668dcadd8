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
	list, err := c.leadingTo(ctx, path, false)
	return slices.DeleteFunc(list, func(a Artifact) bool { return a.Kind != Instruction }), err
}

// leadingTo returns what applies to path: the artifacts of the directories between the root that
// contains path and path, before them the rules of the root, or if scanRoot is set all instructions
// that its directory has now.
func (c *Catalog) leadingTo(ctx context.Context, path string, scanRoot bool) ([]Artifact, error) {
	t, err := c.locate(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.time, errTimeout)
	defer cancel()
	dir, err := c.ws.OpenDir(t.root.Dir.String())
	if err != nil {
		return nil, err
	}
	s := newScanner(c.ws, t.root, c.limits)
	at := newDirectory(dir, nil, ".")
	defer func() {
		for ; at != nil; at = at.parent {
			_ = at.dir.Close()
		}
	}()
	var list []Artifact
	if scanRoot {
		instructions := slices.DeleteFunc(slices.Clone(rows()),
			func(r row) bool { return r.kind != Instruction })
		list = c.scanOne(ctx, s, instructions, at)
	} else {
		list = c.filter(func(a *Artifact) bool {
			return a.Root.Index == t.root.Index && a.Applies.Mode == ByPath
		})
	}
	below := rowsWith("below")
	for _, name := range t.dirs {
		dir, err := at.dir.OpenDir(name)
		if err != nil {
			break // it has been removed
		}
		at = newDirectory(dir, at, name)
		list = append(list, c.scanOne(ctx, s, below, at)...)
	}
	for _, l := range s.reached {
		a := s.artifact(row{kind: Instruction, pattern: l.pattern}, ".")
		a.Name, a.Path = l.pattern, l.path
		a.invalid(l.String())
		list = append(list, a)
	}
	list = slices.DeleteFunc(list, func(a Artifact) bool {
		return ctx.Err() != nil || a.Applies.Mode == ByPath && !a.appliesTo(t.rel)
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
	rows := rowsWith("below")
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
			list = append(list, c.scanOne(ctx, s, rows, at)...)
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

// located is a path in a root.
type located struct {
	root workspace.Root
	dirs []string // names of the existing directories between the root and the path
	rel  string   // the path, slash-separated from the root
}

// locate finds the root that contains path.
func (c *Catalog) locate(path string) (located, error) {
	var missing string
	for {
		dir, err := c.ws.OpenDir(path)
		if err == nil {
			ref := dir.Ref()
			_ = dir.Close()
			t := located{root: ref.Root(), rel: strings.TrimPrefix(ref.Rel()+missing, "./")}
			if ref.Rel() != "." {
				t.dirs = strings.Split(ref.Rel(), "/")
			}
			return t, nil
		}
		parent := filepath.Dir(path)
		if parent == path || (!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)) {
			return located{}, err
		}
		missing = "/" + filepath.Base(path) + missing
		path = parent
	}
}

// scanOne scans a directory, and resolves conflicts between what is found there, and with the
// catalog.
func (c *Catalog) scanOne(ctx context.Context, s *scanner, rows []row, at *directory) []Artifact {
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
		for j := range c.artifacts {
			if known := &c.artifacts[j]; a.State == Active && known.Kind == a.Kind &&
				known.Ref.Rel() != "" && known.Ref == a.Ref {
				a.shadowSameFile(known)
			}
		}
	}
	return list
}
