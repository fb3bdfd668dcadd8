package model

import (
	"context"

	"github.com/acp-agent/acp-agent/workspace"
	"github.com/acp-agent/acp-agent/workspace/tools"
)

// fileTools returns the tools for the files of ws. editor, if not nil, may have them open.
func fileTools(ws *workspace.Workspace, editor tools.Editor) []tool {
	// Each call carries its own permit, because the user is asked as part of it.
	permit := func(context.Context, tools.Change) error { return errRejected }
	var all []tool
	for _, t := range tools.New(ws, tools.Options{Editor: editor, Permit: permit}).Tools() {
		all = append(all, tool{Tool: t, forCall: func(c *call) tools.Tool {
			return t.Permitting(c.permit, c.noteMade)
		}})
	}
	return all
}
