package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/files/namedfile"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/usage"
	"github.com/acp-agent/acp-agent/internal/worktree"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// dirsVariable is the environment variable that stands for --dir, a list like PATH.
const dirsVariable = "ACP_AGENT_DIRS"

// entryFor returns the index of the entry of the configuration for sessions with the working
// directory cwd, or -1, and the folder in whose place cwd is if it is in a worktree of git.
func (set *settings) entryFor(cwd workspace.Dir) (i int, original workspace.Dir) {
	origins, _ := set.worktrees().Origins() // a session warns if they cannot be read
	return set.config.WorkspaceOf(cwd, origins.Of(workspace.Real(cwd))...)
}

// declared returns the folders that the user declared for sessions with the working directory cwd:
// those of --dir or the environment, of --read-dir, then those of the configuration file.
func (set *settings) declared(cwd workspace.Dir) (declared []acp.Folder) {
	i, original := set.entryFor(cwd)
	start := cwd
	if !original.IsZero() {
		start = original
	}
	add := func(setting string, from workspace.Dir, path string, readOnly bool) {
		declared = append(declared, acp.Folder{Path: from.Locate(path), Setting: setting,
			ReadOnly: readOnly, Of: original})
	}
	for _, path := range set.dirs {
		add("--dir", start, path, false)
	}
	for _, path := range filepath.SplitList(os.Getenv(dirsVariable)) {
		setting := dirsVariable
		if strings.ContainsAny(path, ",;") {
			setting += fmt.Sprintf(" (with %q between folders)", filepath.ListSeparator)
		}
		if len(set.dirs) == 0 && path != "" {
			add(setting, start, path, false)
		}
	}
	for _, path := range set.readDirs {
		add("--read-dir", start, path, true)
	}
	if i >= 0 {
		w := set.config.Workspaces[i]
		setting := fmt.Sprintf("workspaces[%d] in %s", i, set.config.Path)
		if !original.IsZero() && !w.Dir.Contains(cwd) {
			setting += worktree.OriginNote(original)
		}
		for _, d := range w.Directories {
			add(setting, w.Dir, d.Path, d.ReadOnly)
		}
	}
	return declared
}

// budgets returns what sessions with the working directory cwd may cost.
func (set *settings) budgets(cwd workspace.Dir) []acp.Budget {
	i, _ := set.entryFor(cwd)
	if i < 0 || set.config.Workspaces[i].Budget.IsZero() {
		return nil
	}
	return []acp.Budget{set.config.Workspaces[i].Budget}
}

// copiedFiles returns the patterns for ignored files that worktrees of a session in cwd get.
func (set *settings) copiedFiles(cwd workspace.Dir) []string {
	if i, _ := set.entryFor(cwd); i >= 0 {
		return set.config.Workspaces[i].Worktree.Copy
	}
	return nil
}

// sessionWorktrees returns where sessions make worktrees.
func (set *settings) sessionWorktrees() acp.Worktrees {
	records, trees := set.worktreeDirs()
	return acp.Worktrees{Records: records, Dir: trees, Copy: set.copiedFiles}
}

// rootFlags are the flags that name root folders.
type rootFlags struct {
	cwd  string
	dirs []string
}

// roots returns the root set, with absolute paths.
func (r rootFlags) roots() (workspace.Roots, error) {
	roots, err := rootsOf(append([]string{r.cwd}, r.dirs...))
	return roots, usage.WithFlagNames(err, "cwd", "dir")
}

// foldersWithin returns the folders of --within, which must exist.
func foldersWithin(paths []string) (workspace.Dirs, error) {
	dirs, err := usage.Absolute(paths...)
	for _, dir := range dirs.All() {
		if !namedfile.IsDir(dir.String()) {
			return dirs, fmt.Errorf("--within: %s is not a folder: create it, or give another one",
				text.Printable(dir.String()))
		}
	}
	return dirs, err
}

// sessionRoots returns the root set that the flags name. Without --dir it is that of a session
// whose editor names no folders, and settings has the setting that declares each root after cwd.
func (set *settings) sessionRoots(r rootFlags) (
	roots workspace.Roots, settings map[workspace.Dir]string, err error,
) {
	if roots, err = r.roots(); err != nil || len(r.dirs) > 0 {
		return roots, nil, err
	}
	return set.declaredRoots(roots.Cwd(), "")
}

// declaredRoots returns the root set of a session in cwd whose editor names no folders, and the
// setting that declares each root after cwd. The session is "" for a new one.
func (set *settings) declaredRoots(
	cwd workspace.Dir, session sessionstore.ID,
) (workspace.Roots, map[workspace.Dir]string, error) {
	opened, err := acp.DeclaredFolders(cwd, session, set.declared(cwd), set.dir(consentName),
		set.sessionWorktrees())
	if err != nil {
		return workspace.Roots{}, nil, err
	}
	var paths, readOnly []string
	settings := make(map[workspace.Dir]string)
	for _, one := range opened {
		dir, err := workspace.ParseDir(one.Path)
		if roots, ok := errors.AsType[workspace.RootErrors](err); ok {
			return workspace.Roots{}, nil,
				errors.New(usage.DescribeRootError(roots[0], one.Setting, one.Setting))
		}
		settings[dir] = cmp.Or(settings[dir], one.Setting)
		if one.ReadOnly {
			readOnly = append(readOnly, dir.String())
		}
		paths = append(paths, one.Path)
	}
	roots, err := workspace.NewRoots(cwd.String(), paths)
	return roots.ReadOnlyAt(readOnly), settings, err
}

// openRoots opens the folders of [settings.sessionRoots]. Its error names the flag or setting
// of the first folder that cannot be opened.
func (set *settings) openRoots(ctx context.Context, r rootFlags) (
	w *workspace.Workspace, settings map[workspace.Dir]string, err error,
) {
	roots, settings, err := set.sessionRoots(r)
	if err != nil {
		return nil, nil, err
	}
	w, err = set.open(ctx, roots)
	if wrong, ok := errors.AsType[workspace.RootErrors](err); ok && settings != nil {
		dir, _ := workspace.ParseDir(wrong[0].Path)
		err = errors.New(usage.DescribeRootError(wrong[0], "--cwd", cmp.Or(settings[dir], "--dir")))
	}
	return w, settings, usage.WithFlagNames(err, "cwd", "dir")
}
