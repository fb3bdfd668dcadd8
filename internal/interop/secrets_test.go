package interop

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an editor gives for MCP servers is nowhere to be found afterwards, also when it was wrong.
func TestS5_W1_SecretsOfMCPServersAreKeptNowhere(t *testing.T) {
	const secret = "tangerine-s3cret"
	dir, cwd := t.TempDir(), folder(t)
	a := startIn(t, filepath.Join(dir, "state"), "--log-level", "debug",
		"--log-file", filepath.Join(dir, "log"), "--trace", filepath.Join(dir, "trace")).initialize()
	server := func(text string) json.RawMessage {
		return json.RawMessage(`{"cwd":` + quoted(cwd) + `,"mcpServers":[` + text + `]}`)
	}
	var made struct{ SessionID string }
	for _, good := range []string{
		`{"name":"n","command":"/bin/true","args":[],"env":[{"name":"TOKEN","value":"` + secret + `"}]}`,
		`{"name":"n","command":"/bin/sh","args":["-c","echo $TOKEN; echo $TOKEN >&2"],"env":[{"name":"TOKEN","value":"` + secret + `"}]}`,
		`{"name":"n","type":"http","url":"http://127.0.0.1:1/?token=` + secret + `","headers":[{"name":"Authorization","value":"` + secret + `"}]}`,
		`{"name":"n","type":"sse","url":"http://127.0.0.1:1/","headers":[{"name":"Authorization","value":"` + secret + `"}]}`,
	} {
		a.call("session/new", server(good), &made)
		require.Equal(t, "end_turn", a.prompt(made.SessionID, "/roots"))
		require.Equal(t, "end_turn", a.prompt(made.SessionID, "/mcp tools"))
		require.Equal(t, "end_turn", a.prompt(made.SessionID, "/mcp"))
	}
	for _, wrong := range []string{
		`{"name":"n","type":"http","url":"https://localhost/","headers":{"Authorization":"` + secret + `"}}`,
		`{"name":"n","type":"sse","url":"https://localhost/","headers":[{"name":"Authorization","value":["` + secret + `"]}]}`,
		`{"name":"n","command":"/bin/true","args":[],"env":"` + secret + `"}`,
		`{"name":"n","command":"/bin/true","args":[],"env":["` + secret + `"]}`,
		`{"name":"n","command":"/bin/true","args":[],"env":{"TOKEN":"` + secret + `"}}`,
		`{"name":"n","command":"/bin/true","args":[],"env":[{"name":"TOKEN","value":["` + secret + `"]}]}`,
		`{"name":"n","command":"/bin/true","args":[],"ENV":[{"name":"TOKEN","value":"` + secret + `"}]}`,
		`{"name":"n","command":"/bin/true","args":[],"\u0065nv":[{"name":"TOKEN","value":"` + secret + `"},7]}`,
	} {
		m := a.try("session/new", server(wrong))
		require.NotNil(t, m.Error, "accepted: %s", wrong)
		require.Equal(t, invalidParams, m.Error.Code, m.Raw)
	}
	for _, m := range a.Messages() {
		require.NotContains(t, m.Raw, secret)
	}
	search(t, dir, secret)
	a.leave()
	require.NotContains(t, a.stderr.String(), secret)
	search(t, dir, secret)
}

// search sees that no file in dir holds text.
func search(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if err == nil {
			require.NotContains(t, string(content), text, path)
		}
		return err
	}))
	require.GreaterOrEqual(t, files, 3, "state, log and trace")
}
