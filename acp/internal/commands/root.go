package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
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

// BroadGrant explains what access to a directory means for which BroadFolder gives a reason.
const BroadGrant = "including the keys, passwords and settings of your programs, and searches " +
	"will be slow"

// BroadFolder says why dir, a real path, has far more in it than a project: it is the top of a file
// system, or it is or contains the home directory. It is "" for other directories.
func BroadFolder(dir workspace.Dir) string {
	path := filepath.Clean(dir.String())
	if filepath.Dir(path) == path {
		return "is the top of the file system"
	}
	name, _ := os.UserHomeDir()
	home, err := workspace.ParseDir(name)
	if err != nil {
		return ""
	}
	switch rel, err := filepath.Rel(path, workspace.Real(home).String()); {
	case err != nil || !filepath.IsLocal(rel):
		return ""
	case rel == ".":
		return "is your home directory"
	default:
		return "contains your home directory"
	}
}

// maxDescription bounds a description from a folder or server in a list, in characters.
const maxDescription = 300

// WriteGroup writes lines about one root.
func (w *Reply) WriteGroup(r Root, lines []string) error {
	heading := fmt.Sprintf("**%s** (folder %d)", text.Code(r.Label), r.Index)
	if len(lines) == 0 {
		return w.Write(heading + ": none\n\n")
	}
	w.Write(heading + "\n\n")
	return w.Quote(strings.Join(lines, "\n") + "\n")
}

// LimitsReached returns lines about the limits that ended the scan of the root.
func (r Root) LimitsReached(c *discovery.Catalog) []string {
	var lines []string
	for _, limit := range c.LimitsReached() {
		if limit.Root.Index == r.Index {
			lines = append(lines, "incomplete: "+text.Printable(limit.String()))
		}
	}
	return lines
}

// Describe returns lines that say what an artifact of the root is, where it is, and which rules it
// breaks. note follows the path.
func (r Root) Describe(a discovery.Artifact, note string) []string {
	line := text.Attributed(a.Name, a.Description, maxDescription)
	if a.State != discovery.Active {
		line = text.Printable(a.Name) + ": " + strings.ReplaceAll(string(a.State), "_", " ") +
			", " + text.Printable(a.Reason)
	}
	where := "  " + r.ShowPath(a.Path)
	if note != "" {
		where += ", " + text.Printable(note)
	}
	lines := []string{line, where}
	for _, d := range a.Diagnostics {
		lines = append(lines, "  "+text.Printable(d))
	}
	return lines
}
