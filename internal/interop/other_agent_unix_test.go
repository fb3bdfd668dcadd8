//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/program"
)

// The command that an error names opens the session that was refused, typed as it stands there.
func TestA31_TheNamedCommandOpensTheSession(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", folder(t))
	t.Setenv("HOME", folder(t))
	t.Setenv("PATH", filepath.Dir(program.Path())+":"+filepath.Dir(os.Args[0])+":"+os.Getenv("PATH"))
	cwd, lib := folder(t), folder(t)
	commands := [][]string{{program.Path()}, append([]string{program.Path()}, behind()...)}
	for i, command := range commands {
		a := startCommand(t, command...).initialize()
		id := a.open(cwd, lib)
		a.leave()
		params := map[string]any{"sessionId": id, "cwd": cwd, "additionalDirectories": []string{lib}, "mcpServers": []any{}}
		b := startCommand(t, commands[1-i]...).initialize()
		require.NotContains(t, b.list(nil), listed{SessionID: id, Cwd: cwd, AdditionalDirectories: []string{lib}})
		for _, method := range []string{"session/load", "session/resume", "session/fork"} {
			m := b.try(method, params)
			require.NotNil(t, m.Error)
			require.Equal(t, invalidParams, m.Error.Code)
			var data struct {
				Violations []struct{ Reason, Expected string }
			}
			require.NoError(t, json.Unmarshal(m.Error.Data, &data))
			require.Equal(t, "other_agent", data.Violations[0].Reason)
			require.Contains(t, m.Error.Message, data.Violations[0].Expected)
			named := startCommand(t, "sh", "-c", "exec "+data.Violations[0].Expected).initialize()
			require.Contains(t, named.list(nil), listed{SessionID: id, Cwd: cwd, AdditionalDirectories: []string{lib}})
			named.call(method, params, nil)
			named.leave()
		}
	}
}
