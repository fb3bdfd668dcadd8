package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// root is a root of the session with the label that answers use for it.
type root struct {
	workspace.Root
	label string
}

// labelRoots returns the roots with their labels.
func labelRoots(ws *workspace.Workspace) []root {
	labels := ws.Labels()
	roots := make([]root, len(labels))
	for i, r := range ws.Opened() {
		roots[i] = root{Root: r, label: labels[i]}
	}
	return roots
}

// show returns how answers write the path rel of the root; "" and "." are the root itself.
func (r root) show(rel string) string {
	if rel == "" || rel == "." {
		return text.Printable(r.label)
	}
	return text.Printable(strings.TrimSuffix(r.label, "/") + "/" + rel)
}

// showPath returns how answers write an absolute path: below the root's label if it lies in the
// root.
func (r root) showPath(path string) string {
	rel, err := filepath.Rel(r.Dir.String(), path)
	if err != nil || !filepath.IsLocal(rel) {
		return text.Printable(path)
	}
	return r.show(filepath.ToSlash(rel))
}

// path returns the absolute path of rel as the client spells the root.
func (r root) path(rel string) string {
	dir := r.Dir.String()
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + filepath.FromSlash(rel)
}

// show returns how answers write a path in the workspace.
func (s *session) show(ref workspace.Ref) string {
	return s.roots[ref.Root().Index].show(ref.Rel())
}

// suggest returns a hint for a path that does not exist: that a relative path exists in another
// root, or that it exists without the root's label, which answers put in front.
func (s *session) suggest(command, path string) string {
	const find = " `/find` finds files by name."
	if filepath.IsAbs(path) {
		return find
	}
	for _, r := range s.roots {
		for _, rel := range []string{path,
			strings.TrimPrefix(filepath.ToSlash(path), r.label+"/")} {
			if info, err := s.workspace().Stat(r.path(rel)); err == nil && info.Mode().IsRegular() {
				return fmt.Sprintf(" A relative path starts at %s. Did you mean %s?",
					text.Code(s.roots[0].label), text.Code(command+" "+r.path(rel)))
			}
		}
	}
	return find
}
