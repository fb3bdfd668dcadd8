package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/permission"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/workspace"
)

// Workspace declares the folders of sessions whose working directory is Cwd or below it.
type Workspace struct {
	Cwd         string        `json:"cwd"`
	Dir         workspace.Dir `json:"-"` // the same
	Directories []Directory   `json:"directories"`
	Worktree    Worktree      `json:"worktree"`
	// Budget is the amount that these sessions may cost before the user is asked.
	Budget acp.Budget `json:"budget"`
	// Permissions are rules in addition to those for all sessions.
	Permissions *permission.Permissions `json:"permissions"`
}

// Directory is a folder of an entry. The file has its path, or an object.
type Directory struct {
	Path string `json:"path"`
	// ReadOnly means that nothing in it may be changed.
	ReadOnly bool `json:"readOnly"`
}

// String returns the directory for a person.
func (d Directory) String() string {
	if d.ReadOnly {
		return d.Path + " (read-only)"
	}
	return d.Path
}

// Worktree says what worktrees get besides what is committed.
type Worktree struct {
	// Copy are patterns for the paths of ignored files, relative to the top of a repository.
	Copy []string `json:"copy"`
}

// PermissionsFor returns the rules for sessions with the working directory cwd, nil if none are
// configured. The deny and ask rules of all entries above it hold, also if only the repository of
// an entry lists cwd as a worktree.
func (c Config) PermissionsFor(cwd workspace.Dir) *permission.Permissions {
	all := c.Permissions
	deepest, _ := c.WorkspaceOf(cwd)
	for i, w := range c.Workspaces {
		if w.Permissions == nil {
			continue
		}
		var rules permission.Permissions
		if i == deepest {
			rules.Allow = w.Permissions.Allow
		}
		for _, at := range []workspace.Dir{cwd, worktree.Listed(w.Dir, cwd)} {
			if _, below, holds := w.above(at); holds {
				rules = rules.With(w.Permissions.Below(below))
			}
		}
		if len(rules.Allow)+len(rules.Ask)+len(rules.Deny) == 0 && i != deepest {
			continue
		}
		if all != nil {
			rules = all.With(rules)
		}
		all = &rules
	}
	return all
}

// checkRules returns an error that names the first rule that is not one.
func checkRules(p *permission.Permissions) error {
	if p == nil {
		return nil
	}
	if _, err := p.Rules(); err != nil {
		return fmt.Errorf("permissions: %w", err)
	}
	return nil
}

// ReadPermissions reads a file that has only rules, as the configuration has them.
func ReadPermissions(path string) (p permission.Permissions, err error) {
	content, err := namedfile.Read(path)
	if err != nil {
		return p, fmt.Errorf("%v", namedfile.Explain(err))
	}
	wrapped := append(append([]byte(`{"permissions":`), content...), "\n}"...)
	c, err := Parse(path, wrapped)
	if err != nil || c.Permissions == nil {
		return p, cmp.Or(err, fmt.Errorf("%s: has no rules", path))
	}
	return *c.Permissions, nil
}

// resolveWorkspace makes the cwd of an entry absolute and checks the entry.
func (c Config) resolveWorkspace(i int) error {
	w := &c.Workspaces[i]
	path, err := ResolvePath(c.Path, w.Cwd)
	if err != nil {
		return err
	}
	if w.Dir, err = workspace.ParseDir(path); err != nil {
		return fmt.Errorf("cwd %q %s", w.Cwd, err.(workspace.RootErrors)[0].Problem())
	}
	for j, other := range c.Workspaces[:i] {
		if other.Dir == w.Dir {
			return fmt.Errorf(
				"workspaces[%d] has the same cwd: put the directories of both into one", j)
		}
	}
	if slices.ContainsFunc(w.Directories, func(d Directory) bool { return d.Path == "" }) {
		return errors.New("a directory has no path")
	}
	w.Cwd, w.Budget.Within = w.Dir.String(), w.Dir
	return checkRules(w.Permissions)
}

// WorkspaceOf returns the index of the entry for sessions with the working directory cwd, which is
// in the place of the folders originals, or -1. It is the entry whose cwd is closest above one of
// these directories or the same, as spelled or without links. original is the one of originals that
// the entry is for, or the only one.
func (c Config) WorkspaceOf(
	cwd workspace.Dir, originals ...workspace.Dir,
) (found int, original workspace.Dir) {
	found, closest := -1, math.MaxInt
	if len(originals) == 1 {
		original = originals[0]
	}
	for _, at := range slices.Concat([]workspace.Dir{cwd}, originals) {
		for i, w := range c.Workspaces {
			if distance, _, holds := w.above(at); holds && distance < closest {
				found, closest = i, distance
				if at != cwd {
					original = at
				}
			}
		}
	}
	return found, original
}

// above reports whether the entry is for sessions with the working directory cwd, where that is
// below its own, and how many names it is below.
func (w Workspace) above(cwd workspace.Dir) (distance int, below string, holds bool) {
	real := workspace.Real(w.Dir)
	for _, at := range []workspace.Dir{cwd, workspace.Real(cwd)} {
		for _, top := range []workspace.Dir{w.Dir, real} {
			if top.Contains(at) {
				below, _ = filepath.Rel(top.String(), at.String())
				holds = true
			}
		}
	}
	return depth(workspace.Real(cwd)) - depth(real), below, holds
}

// depth returns how many names are in the path of dir.
func depth(dir workspace.Dir) int {
	const separator = string(filepath.Separator)
	return strings.Count(strings.TrimRight(dir.String(), separator), separator)
}
