package model

import (
	"context"

	"github.com/acp-agent/acp-agent/workspace/tools"
)

// fileTools returns the tools for the files of the roots.
func (s *modelSession) fileTools() (all []tool) {
	rules, _ := s.host.Permits().Restrictions()
	o := tools.Options{Editor: s.editor(), Permit: neverPermit}
	for _, t := range tools.New(s.host.Workspace(), o).Tools() {
		forCall := func(c *modelCall) tools.Tool {
			return t.Permitting(c.permit, c.noteMade, c.checkAccess)
		}
		all = append(all, tool{Tool: t, alone: len(rules.Ask) > 0, forCall: forCall})
	}
	return all
}

// neverPermit is the permit of tools that are not called: each call carries its own, because the
// user is asked as part of it.
func neverPermit(context.Context, tools.Change) error { return errRejected }

// editor returns what may have files open, nil for nothing.
func (s *modelSession) editor() tools.Editor {
	if s.backend.files {
		return openFiles{s}
	}
	return nil
}
