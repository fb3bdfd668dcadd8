package agents

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A part of TestSessionsOfARealAgent tests sessions in folders of its own. It may return a second
// half.
type part func(t *testing.T, s *stage, e *editor) again

// again is the second half of a part, in another process of the program and of the agent.
type again func(t *testing.T, e *editor)

// The parts share processes, because starting opencode takes seconds.
func TestSessionsOfARealAgent(t *testing.T) {
	t.Parallel()
	type named struct {
		name string
		part
	}
	both := []named{
		{"several roots", multiRoot},
		{"knows skills and instructions", knowsSkillsAndInstructions},
		{"prompt during a turn", getsPromptDuringTurn},
	}
	opencodes, claudes := []named{{"several roots", multiRoot}, {"held to the roots", heldToTheRoots}}, both
	if *survey { // opencode takes seconds for each working directory
		both = append(slices.Clip(both), []named{
			{"told of new roots", toldOfNewRoots},
			{"told of other roots", toldOfOtherRoots},
			{"knows instructions in a command", knowsInstructionsInCommand},
		}...)
		claudes = both
		opencodes = append([]named{
			{"tools for other roots", givenToolsForOtherRoots},
			{"no tools for roots of other sessions", noToolsForRootsOfOtherSessions},
			{"held to the roots", heldToTheRoots},
		}, both...)
	}
	for _, c := range []struct {
		subject
		parts []named
		again func(*testing.T, *stage) *editor
	}{
		{opencode, opencodes, func(t *testing.T, s *stage) *editor { return s.behind(t, withFiles, "--allow", "read") }},
		{claude, claudes, func(t *testing.T, s *stage) *editor { return s.behind(t, noFiles) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onStage(t, c.subject)
			s.placeCommand(t)
			e := s.behind(t, noFiles)
			halves := make([]again, len(c.parts))
			for i, p := range c.parts {
				folders := s.inNewFolders(t)
				if c.name == opencode.name && !*survey {
					folders.cwd = s.cwd
				}
				t.Run(p.name, func(t *testing.T) {
					e.lend(t)
					halves[i] = p.part(t, folders, e)
				})
			}
			t.Run("W9/nothing of it is left", func(t *testing.T) {
				require.NotEmpty(t, s.processes(t))
				e.leave()
				require.Empty(t, s.processes(t))
			})
			e = c.again(t, s)
			for i, p := range c.parts {
				if half := halves[i]; half != nil {
					t.Run(p.name+" in another process", func(t *testing.T) {
						e.lend(t)
						half(t, e)
					})
				}
			}
		})
	}
}
