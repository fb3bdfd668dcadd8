package tools

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Set is the tools over one workspace. It is immutable and safe for concurrent use; making one is cheap.
type Set struct {
	ws    *workspace.Workspace
	o     Options
	tools []Tool
}

// New returns the tools over ws. Where ws is nil they can be listed, and every call fails with
// [workspace.ErrClosed]. The workspace stays its owner's.
func New(ws *workspace.Workspace, o Options) *Set {
	s := &Set{ws: ws, o: o.withDefaults()}
	s.tools = []Tool{
		s.listRootsTool(), s.listDirectoryTool(), s.fileInfoTool(), s.readFileTool(), s.findFilesTool(), s.searchTool(),
	}
	if o.Permit != nil {
		s.tools = append(s.tools, s.writeFileTool(), s.editFileTool())
	}
	return s
}

// Tools are all tools, always in the same order: those that only read come first. The caller owns the slice.
func (s *Set) Tools() []Tool { return slices.Clone(s.tools) }

// Tool is the tool of this name.
func (s *Set) Tool(name string) (Tool, bool) {
	for _, t := range s.tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Call calls the tool of this name. The error is an *[UnknownToolError], or that of [Tool.Call].
func (s *Set) Call(ctx context.Context, name string, arguments json.RawMessage) (Result, error) {
	t, ok := s.Tool(name)
	if !ok {
		return Result{}, &UnknownToolError{Name: name}
	}
	return t.Call(ctx, arguments)
}
