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
		`{"name":"n","type":"http","url":"http://127.0.0.1:1/s/` + secret + `/mcp","headers":[]}`,
		`{"name":"n","type":"sse","url":"http://127.0.0.1:1/?` + secret + `","headers":[]}`,
		`{"name":"n","type":"http","url":"http://` + secret + `@127.0.0.1:1/#` + secret + `","headers":[]}`,
		`{"name":"n","command":"/bin/sh","args":["-c","echo $0 >&2; exit 1","--url=https://example.com/s/` + secret + `/mcp"],"env":[]}`,
		`{"name":"n","command":"/bin/sh","args":["-c","echo last words: $TOKEN >&2; exit 1"],"env":[{"name":"TOKEN","value":"` + secret + `"}]}`,
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

// An agent that prints the secrets that it was given before it dies, or answers with them, reveals them to nobody.
func TestS5_W1_AgentRevealsSecrets(t *testing.T) {
	const secret = "tangerine-s3cret"
	t.Setenv("ACP_TEST_API_KEY", "tangerine-k3y")
	for name, c := range map[string]struct{ ends, expect string }{
		"in its last words": {`echo "Zed: $KEY $TOKEN $ACP_TEST_API_KEY" >&2; exit 1`, `ended: exit status 1: Zed: [secret] [secret] [secret]; `},
		"cut off":           {`printf '%4090s%s\n' '' $KEY >&2; exit 1`, "ended: exit status 1"},
		"in an error": {
			`echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"bad key '$KEY'","data":{"\u0061":["'$URL'"]}}}'; cat`,
			`"message":"bad key [secret]","data":{"a":["https://example.com/[secret]"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, cwd := t.TempDir(), folder(t)
			config := filepath.Join(dir, "config.json")
			script := `next() { read -r id; id=${id#*'"id":'}; id=${id%%,*}; }
				next; echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}'
				next; TOKEN=` + secret + `; URL=https://example.com/s/` + secret + `/mcp; ` + c.ends
			require.NoError(t, os.WriteFile(config, []byte(`{"agents":{"revealing":{"command":"sh","args":["-c",`+quoted(script)+
				`],"env":{"KEY":"k3y-of-the-agent"}}}}`), 0o600))
			a := startIn(t, filepath.Join(dir, "state"), "--config", config, "--log-level", "debug", "--log-file", filepath.Join(dir, "log"),
				"--trace", filepath.Join(dir, "trace"), "--agent", "revealing").initialize()
			m := a.try("session/new", json.RawMessage(`{"cwd":`+quoted(cwd)+`,"mcpServers":[`+
				`{"name":"a","command":"/bin/true","args":[],"env":[{"name":"TOKEN","value":"`+secret+`"}]},`+
				`{"name":"b","type":"http","url":"https://example.com/s/`+secret+`/mcp","headers":[]}]}`))
			require.NotNil(t, m.Error)
			require.Contains(t, m.Raw, c.expect)
			a.leave()
			for _, s := range []string{"tangerine", "k3y-of"} {
				require.NotContains(t, m.Raw, s)
				for _, file := range []string{"log", "trace"} {
					content, err := os.ReadFile(filepath.Join(dir, file))
					require.NoError(t, err)
					require.NotContains(t, string(content), s)
				}
			}
		})
	}
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
