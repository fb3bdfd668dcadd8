package model

import (
	"cmp"
	"context"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// display says how calls of a tool are shown: as which kind, and what they do in plain words.
type display struct {
	kind  sdk.ToolKind
	title func(callInput) string
}

// fileDisplays has an entry for each tool of package tools.
var fileDisplays = map[string]display{
	"list_roots":     {sdk.ToolKindRead, func(callInput) string { return "List the folders" }},
	"list_directory": {sdk.ToolKindRead, titlePath("List ", "the working directory")},
	"directory_tree": {sdk.ToolKindRead, titlePath("Show the tree of ", "the folders")},
	"find_files": {sdk.ToolKindSearch, func(in callInput) string {
		return "Find " + cmp.Or(show(in.Glob), "files") + in.where()
	}},
	"search": {sdk.ToolKindSearch, func(in callInput) string {
		return "Search for " + text.Quote(text.Truncate(in.Pattern, maxTitle)) + in.where()
	}},
	"find_skills": {sdk.ToolKindSearch, func(in callInput) string {
		return "Find skills for " + text.Quote(text.Truncate(in.Query, maxTitle))
	}},
	"file_info":  {sdk.ToolKindRead, titlePath("Look up ", "")},
	"read_file":  {sdk.ToolKindRead, titlePath("Read ", "")},
	"read_media": {sdk.ToolKindRead, titlePath("Read ", "")},
	"read_files": {sdk.ToolKindRead, func(in callInput) string {
		return "Read " + show(strings.Join(in.Paths, ", "))
	}},
	"write_file":       {sdk.ToolKindEdit, titlePath("Write ", "")},
	"edit_file":        {sdk.ToolKindEdit, titlePath("Edit ", "")},
	"create_directory": {sdk.ToolKindEdit, titlePath("Create directory ", "")},
	"delete_file":      {sdk.ToolKindDelete, titlePath("Delete ", "")},
	"move_file": {sdk.ToolKindMove, func(in callInput) string {
		return "Move " + show(in.Path) + " to " + show(in.To)
	}},
}

// maxTitle bounds what a title quotes of an argument, in bytes.
const maxTitle = 200

func show(argument string) string { return text.Printable(text.Truncate(argument, maxTitle)) }

// titlePath returns a title of a verb and the path of a call, or the default if it has none.
func titlePath(verb, byDefault string) func(callInput) string {
	return func(in callInput) string { return verb + cmp.Or(show(in.Path), byDefault) }
}

// fileTools returns the tools on the files of ws.
func fileTools(ws *workspace.Workspace) []tool {
	var all []tool
	// The tools of this set are listed, and those that only read are called. It permits nothing.
	deny := func(context.Context, tools.Change) error { return errRejected }
	set := tools.New(ws, tools.Options{Permit: deny})
	for i, t := range set.Tools() {
		forCall := func(*call) tools.Tool { return t }
		if !t.Annotations.ReadOnly { // the user is asked as part of the call
			forCall = func(c *call) tools.Tool {
				return tools.New(ws, tools.Options{Permit: c.permit}).Tools()[i]
			}
		}
		all = append(all, tool{Tool: t, display: fileDisplays[t.Name], forCall: forCall})
	}
	return all
}
