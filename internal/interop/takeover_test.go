package interop

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two windows of an editor, two programs, one store.
func TestS3_TheWindowThatOpenedASessionLastHasIt(t *testing.T) {
	state, cwd := filepath.Join(t.TempDir(), "state"), folder(t, "f.txt", "needle")
	first, second := startIn(t, state).initialize(), startIn(t, state).initialize()
	id := first.open(cwd)
	require.Equal(t, "end_turn", first.prompt(id, "/search needle"))
	opened := map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}

	second.call("session/load", opened, nil)
	require.Contains(t, second.updates(0, id), "/search needle")
	m := first.try("session/prompt", promptParams(id, "/search lost"))
	require.NotNil(t, m.Error)
	require.Contains(t, m.Error.Message, "another window")
	require.Equal(t, "end_turn", second.prompt(id, "/roots"))

	from := len(first.Messages())
	first.call("session/load", opened, nil) // and back
	history := first.updates(from, id)
	require.Contains(t, history, "/roots")
	require.NotContains(t, history, "/search lost", "what was refused left no trace")
	require.NotNil(t, second.try("session/prompt", promptParams(id, "/roots")).Error)
	require.Equal(t, "end_turn", first.prompt(id, "/roots"))
}
