package commands

import (
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
)

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
