package commands

import (
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Root is a root of the session with the label that answers use for it.
type Root struct {
	workspace.Root
	Label string
}

// LabelRoots returns the roots with their labels.
func LabelRoots(ws *workspace.Workspace) []Root {
	labels := ws.Labels()
	roots := make([]Root, len(labels))
	for i, r := range ws.Opened() {
		roots[i] = Root{Root: r, Label: labels[i]}
	}
	return roots
}

// ShowPath returns how answers write an absolute path: below the root's label if it lies in the
// root.
func (r Root) ShowPath(path string) string {
	rel, err := filepath.Rel(r.Dir.String(), path)
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return text.Printable(path)
	case rel == ".":
		return text.Printable(r.Label)
	}
	return text.Printable(strings.TrimSuffix(r.Label, "/") + "/" + filepath.ToSlash(rel))
}
