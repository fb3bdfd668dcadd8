package interop

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A session that nobody prompted is opened again by a process that knows of it from the disk alone.
func TestA19_ASessionIsResumableAfterAKillRightAfterItsAnswer(t *testing.T) {
	state, cwd, lib := filepath.Join(t.TempDir(), "state"), folder(t), folder(t)
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		for range 3 {
			a := startIn(t, state).initialize()
			id := a.open(cwd, lib)
			a.kill()
			b := startIn(t, state).initialize()
			var result struct{ SessionID string }
			b.call(method, map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{}}, &result)
			if result.SessionID == "" {
				result.SessionID = id
			}
			from := b.Count()
			require.Equal(t, "end_turn", b.prompt(result.SessionID, "/roots"))
			require.Contains(t, b.updates(from, result.SessionID), lib)
			b.kill()
		}
	}
}
