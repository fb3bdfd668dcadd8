// Package filechange shows changes of files, which workspace/tools plans, to ACP clients.
package filechange

import (
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// Describe returns a planned change as the user sees it before it is made: the resolved paths,
// their roots and the difference. verb says what is done to the text of a file, such as "Write".
func Describe(c tools.Change, verb string) backend.ToolCall {
	path, root := c.Ref.Path(), c.Ref.Root().Dir.String()
	title := text.Printable(path) + " in folder " + text.Printable(root)
	shown := backend.ToolCall{Content: []any{}}
	shown.Locations = backend.Locations(path, c.FirstLine())
	switch c.Kind {
	case tools.Write:
		title = verb + " " + title + c.SideEffects()
		shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, c.New))
	case tools.CreateDirectory:
		title = "Create directory " + title + c.SideEffects()
	case tools.Delete:
		title = "Delete " + c.What + " " + title
		if c.Old != nil {
			shown.Content = append(shown.Content, backend.NewDiff(path, c.Old, ""))
		}
	case tools.Move:
		title = "Move " + c.What + " " + title + " to " + text.Printable(c.To.Path())
		shown.Locations = append(shown.Locations, backend.Locations(c.To.Path(), 0)...)
	}
	shown.Title = &title
	return shown
}
