package model

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// describeChange returns a planned change as the user sees it before it is made: the resolved
// paths, their roots and the difference.
func describeChange(c tools.Change) backend.ToolCall {
	path := c.Ref.Path()
	title := inFolder(c.Ref)
	shown := backend.ToolCall{Content: []any{}}
	shown.Locations = backend.Locations(path, c.FirstLine())
	switch c.Kind {
	case tools.Write:
		title = "Write " + title + c.SideEffects()
		shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, c.New))
	case tools.CreateDirectory:
		title = "Create directory " + title + c.SideEffects()
	case tools.Delete:
		title = "Delete " + c.What + " " + title
		if c.Old != nil {
			shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, ""))
		}
	case tools.Move:
		to := inFolder(c.To)
		if c.To.Root() == c.Ref.Root() {
			to = text.Path(c.To.Rel())
		}
		title = "Move " + c.What + " " + title + " to " + to + c.SideEffects()
		shown.Locations = append(shown.Locations, backend.Locations(c.To.Path(), 0)...)
	}
	shown.Title = &title
	return shown
}

// inFolder says where something is: its path in its root, and the root.
func inFolder(at workspace.Ref) string {
	return text.Path(at.Rel()) + " in folder " + text.Path(at.Root().Dir.String())
}
