package agents

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

// heldToTheRoots is about opencode, which asks the editor to write the files it has edited. Its
// second half needs an editor that writes files, and a program that allows reading.
//
// Clause P4.
func heldToTheRoots(t *testing.T, s *stage, _ *editor) again {
	if *survey {
		outside := folder(t, "banana\n")
		alone := s.alone(t, withFiles)
		made, err := alone.NewSession(within(t), client.Setup{Roots: s.roots(t)})
		require.NoError(t, err)
		s.prompt(alone, made.ID, "Outside.", modelserver.Read(fruit(outside)),
			modelserver.Edit(fruit(outside), "banana", "cherry"))
		require.Equal(t, []string{fruit(outside)}, alone.written, "by itself it writes where it likes")
		alone.leave()
	}
	return func(t *testing.T, e *editor) {
		outside := folder(t, "cherry\n")
		made, err := e.NewSession(within(t), client.Setup{Roots: s.roots(t, s.first)})
		require.NoError(t, err)
		s.prompt(e, made.ID, "Outside.", modelserver.Read(fruit(outside)),
			modelserver.Edit(fruit(outside), "cherry", "damson"))
		require.Empty(t, e.written, "a path outside of the roots does not reach the editor")
		s.prompt(e, made.ID, "Inside.", modelserver.Read(fruit(s.first)),
			modelserver.Edit(fruit(s.first), "banana", "cherry"))
		require.Equal(t, []string{fruit(s.first)}, e.written, "a path in an additional root does")
		t.Run("P5/what the agent does on the disk by itself is not contained", func(t *testing.T) {
			require.Equal(t, "damson\n", content(t, outside), "mend docs/security.md if this has changed")
		})
	}
}
