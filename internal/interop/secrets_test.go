package interop

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Secrets in mcpServers are stored nowhere, even if the request was invalid.
func TestS5_W1_MCPServerSecrets(t *testing.T) {
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

// search checks that no file in dir contains text.
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

// The agent behind acp-agent receives the secrets of its MCP servers. None of them is stored.
func TestS5_W1_AgentSecrets(t *testing.T) {
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
