package interop

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent behind is sent what its MCP servers are given. Nothing of it is kept for the next time.
func TestS5_W1_SecretsForTheAgentBehindAreKeptNowhere(t *testing.T) {
	const secret = "tangerine-s3cret"
	dir, cwd, lib := t.TempDir(), folder(t), folder(t)
	a := startIn(t, filepath.Join(dir, "state"), append([]string{"--log-level", "debug",
		"--log-file", filepath.Join(dir, "log"), "--trace", filepath.Join(dir, "trace")}, behind()...)...).initialize()
	params := func(id string) json.RawMessage {
		return json.RawMessage(`{` + id + `"cwd":` + quoted(cwd) + `,"additionalDirectories":[` + quoted(lib) +
			`],"mcpServers":[{"name":"n","command":"/bin/true","args":[],"env":[{"name":"TOKEN","value":"` + secret + `"}]}]}`)
	}
	var made struct{ SessionID string }
	a.call("session/new", params(""), &made)
	id := `"sessionId":` + quoted(made.SessionID) + `,`
	require.Equal(t, "end_turn", a.prompt(made.SessionID, "hello"))
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		a.call(method, params(id), nil)
	}
	require.Equal(t, "end_turn", a.prompt(made.SessionID, "hello"))
	search(t, dir, secret)
	a.leave()
	require.NotContains(t, a.stderr.String(), secret)
	search(t, dir, secret)
}
