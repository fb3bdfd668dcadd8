package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/workspace"
)

// dirsVariable is the environment variable that stands for --dir, a list like PATH.
const dirsVariable = "ACP_AGENT_DIRS"

// folders returns the folders that the user declared for sessions with the working directory cwd:
// those of --dir or the environment, then those of the configuration file.
func (set *settings) folders(cwd workspace.Dir) []acp.Folder {
	var folders []acp.Folder
	add := func(setting string, from workspace.Dir, paths []string) {
		for _, path := range paths {
			folders = append(folders, acp.Folder{Path: from.Locate(path), Setting: setting})
		}
	}
	if len(set.dirs) > 0 {
		add("--dir", cwd, set.dirs)
	} else {
		for _, path := range filepath.SplitList(os.Getenv(dirsVariable)) {
			if path != "" {
				add(dirsVariable, cwd, []string{path})
			}
		}
	}
	if i := set.config.WorkspaceOf(cwd); i >= 0 {
		w := set.config.Workspaces[i]
		from, err := workspace.ParseDir(w.Cwd)
		if err == nil { // parseConfig checked it
			add(fmt.Sprintf("workspaces[%d] in %s", i, set.config.Path), from, w.Directories)
		}
	}
	return folders
}

// budgets returns what sessions with the working directory cwd may cost.
func (set *settings) budgets(cwd workspace.Dir) []acp.Budget {
	i := set.config.WorkspaceOf(cwd)
	if i < 0 || set.config.Workspaces[i].Budget.IsZero() {
		return nil
	}
	w := set.config.Workspaces[i]
	b := w.Budget
	var err error
	if b.Within, err = workspace.ParseDir(w.Cwd); err != nil {
		return nil // parseConfig checked it
	}
	return []acp.Budget{b}
}
