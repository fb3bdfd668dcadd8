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

// display says how to show calls of a tool: their kind, and a title that says what they do.
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
	"file_info":  {sdk.ToolKindRead, titlePath("Look up ", "a file")},
	"read_file":  {sdk.ToolKindRead, titlePath("Read ", "a file")},
	"read_media": {sdk.ToolKindRead, titlePath("Read ", "a file")},
	"read_files": {sdk.ToolKindRead, func(in callInput) string {
		return "Read " + cmp.Or(show(strings.Join(in.Paths, ", ")), "files")
	}},
	"write_file":       {sdk.ToolKindEdit, titlePath("Write ", "a file")},
	"edit_file":        {sdk.ToolKindEdit, titlePath("Edit ", "a file")},
	"create_directory": {sdk.ToolKindEdit, titlePath("Create directory ", "…")},
	"delete_file":      {sdk.ToolKindDelete, titlePath("Delete ", "a file")},
	"move_file": {sdk.ToolKindMove, func(in callInput) string {
		return "Move " + cmp.Or(show(in.Path), "a file") + " to " + cmp.Or(show(in.To), "…")
	}},
}

// maxTitle bounds the part of an argument that a title quotes, in bytes.
const maxTitle = 200

func show(argument string) string { return text.Printable(text.Truncate(argument, maxTitle)) }

// titlePath returns a title of a verb and the path of a call, or the default if it has none.
func titlePath(verb, byDefault string) func(callInput) string {
	return func(in callInput) string { return verb + cmp.Or(show(in.Path), byDefault) }
}

// fileTools returns the tools for the files of ws. editor, if not nil, may have them open.
func fileTools(ws *workspace.Workspace, editor tools.Editor) []tool {
	var all []tool
	o := tools.Options{Editor: editor}
	// This set is used to list all tools and to call those that only read. It permits no changes.
	o.Permit = func(context.Context, tools.Change) error { return errRejected }
	set := tools.New(ws, o)
	for i, t := range set.Tools() {
		forCall := func(*call) tools.Tool { return t }
		if !t.Annotations.ReadOnly { // the user is asked as part of the call
			forCall = func(c *call) tools.Tool {
				o := o
				o.Permit, o.Made = c.permit, c.noteMade
				return tools.New(ws, o).Tools()[i]
			}
		}
		all = append(all, tool{Tool: t, display: fileDisplays[t.Name], forCall: forCall})
	}
	return all
}
