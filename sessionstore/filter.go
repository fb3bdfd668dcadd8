package sessionstore

import "github.com/acp-agent/acp-agent/workspace"

// FilterDir is a filter by one directory, whose real path is looked up now.
func FilterDir(d workspace.Dir) *DirFilter {
	return &DirFilter{Spelling: d, Real: workspace.Real(d)}
}

// FilterDirs is a filter by an ordered list, whose real paths are looked up now.
func FilterDirs(dirs workspace.Dirs) *DirsFilter {
	f := &DirsFilter{Spelling: dirs}
	for _, d := range dirs.All() {
		f.Real = append(f.Real, workspace.Real(d))
	}
	return f
}
