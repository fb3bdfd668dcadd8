package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/workspace"
)

// dirsVariable is the environment variable that stands for --dir, a list like PATH.
const dirsVariable = "ACP_AGENT_DIRS"

// workspaceConfig declares the folders of sessions whose working directory is Cwd or below it.
type workspaceConfig struct {
	Cwd         string   `json:"cwd"`
	Directories []string `json:"directories"`
}

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
	if i := set.config.workspaceOf(cwd); i >= 0 {
		w := set.config.Workspaces[i]
		from, err := workspace.ParseDir(w.Cwd)
		if err == nil { // parseConfig checked it
			add(fmt.Sprintf("workspaces[%d] in %s", i, set.config.path), from, w.Directories)
		}
	}
	return folders
}

// workspaceOf returns the index of the entry for sessions with the working directory cwd, or -1. It
// is the entry with the deepest cwd that is that directory or above it, as spelled or without
// links.
func (c config) workspaceOf(cwd workspace.Dir) int {
	found, depth := -1, -1
	if len(c.Workspaces) == 0 {
		return found
	}
	const separator = string(filepath.Separator)
	session := []workspace.Dir{cwd, workspace.Real(cwd)}
	for i, w := range c.Workspaces {
		dir, err := workspace.ParseDir(w.Cwd)
		if err != nil {
			continue
		}
		real := workspace.Real(dir)
		for _, at := range session {
			d := strings.Count(strings.TrimRight(real.String(), separator), separator)
			if (dir.Contains(at) || real.Contains(at)) && d > depth {
				found, depth = i, d
			}
		}
	}
	return found
}
