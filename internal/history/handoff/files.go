package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/history/changes"
	"github.com/acp-agent/acp-agent/workspace"
)

// changedFiles returns the last state of each changed file, the newest first.
func (r *record) changedFiles() (files []changes.Edit) {
	at := make(map[string]int)
	for _, t := range r.turns {
		for _, c := range t.files {
			if i, known := at[c.Path]; known {
				c.Added, c.Removed = c.Added+files[i].Added, c.Removed+files[i].Removed
				files[i].Path = "" // it moves to the end
			}
			at[c.Path] = len(files)
			files = append(files, c)
		}
	}
	files = slices.DeleteFunc(files, func(c changes.Edit) bool { return c.Path == "" })
	slices.Reverse(files)
	return files
}

// describe returns a line about c, and compares the file with the disk if it lies in a folder of w,
// which may be nil.
func describe(c changes.Edit, w *workspace.Workspace) string {
	line := string(c.Kind) + " " + shownPath(c.Path, w)
	if c.Added+c.Removed > 0 {
		line += fmt.Sprintf(" +%d -%d", c.Added, c.Removed)
	}
	if state := stateOf(c, w); state != "" {
		line += " (" + state + ")"
	}
	return line
}

// shownPath returns a path relative to the session's folder, which it begins with.
func shownPath(path string, w *workspace.Workspace) string {
	if w == nil {
		return path
	}
	for i, root := range w.Opened() {
		switch rel := changes.Below(root, path); {
		case rel != "" && i == 0:
			return rel
		case rel != "":
			return w.Labels()[i] + "/" + rel
		}
	}
	return path
}

// stateOf compares the file with the disk.
func stateOf(c changes.Edit, w *workspace.Workspace) string {
	const most = 1 << 20
	if w == nil {
		return ""
	}
	f, err := w.Open(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Kind == 'D':
		return "as left"
	case errors.Is(err, fs.ErrNotExist):
		return "gone"
	case err != nil:
		return ""
	}
	defer f.Close()
	if c.Kind == 'D' {
		return "there again"
	}
	if c.New == "" {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil || len(content) > most:
		return ""
	case bytes.Contains(content, []byte(strings.TrimSpace(c.New))):
		return "as left"
	}
	return "changed since"
}
