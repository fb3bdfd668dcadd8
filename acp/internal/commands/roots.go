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

// Show returns how answers write the path rel of the root; "" and "." are the root itself.
func (r Root) Show(rel string) string {
	if rel == "" || rel == "." {
		return text.Printable(r.Label)
	}
	return text.Printable(strings.TrimSuffix(r.Label, "/") + "/" + rel)
}

// ShowPath returns how answers write an absolute path: below the root's label if it lies in the
// root.
func (r Root) ShowPath(path string) string {
	rel, err := filepath.Rel(r.Dir.String(), path)
	if err != nil || !filepath.IsLocal(rel) {
		return text.Printable(path)
	}
	return r.Show(filepath.ToSlash(rel))
}
