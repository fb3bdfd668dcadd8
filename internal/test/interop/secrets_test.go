package interop

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
)

// Secrets in mcpServers are stored nowhere, even if the request was invalid.
//
// Clauses S5, W1.
func TestMCPServerSecrets(t *testing.T) {
	t.Parallel()
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
		`{"name":"n","type":"http","url":"http://127.0.0.1:1/s/` + secret + `/mcp","headers":[]}`,
		`{"name":"n","type":"http","url":"http://127.0.0.1:1/?` + secret + `","headers":[]}`,
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

// The variable with a model's key is not part of the environment of MCP servers, unless their
// configuration names it.
//
// Clause B1.
func TestModelKeyIsNotInherited(t *testing.T) {
	const key = "sk-tangerine-1"
	t.Setenv("TEST_MODEL_KEY", key)
	t.Setenv("TEST_MODEL_OTHER", "kept")
	stage := onModelStage(t)
	stage.configure(t, fmt.Sprintf(`"baseURL": %q, "keyEnv": "TEST_MODEL_KEY"`, stage.model.URL()+"/v1"))
	e, dir := stage.edit(t), folder(t)
	out := filepath.Join(dir, "environment")
	server := func(file string, env ...sdk.EnvVariable) sdk.McpServer {
		if env == nil {
			env = []sdk.EnvVariable{}
		}
		return sdk.McpServer{Stdio: &sdk.McpServerStdio{Name: file, Command: "/bin/sh", Args: []string{"-c", "env >" + out + file + "~; mv " + out + file + "~ " + out + file}, Env: env}}
	}
	named := server("2", sdk.EnvVariable{Name: "TEST_MODEL_KEY", Value: "given"})
	session := stage.open(e, client.Setup{Roots: rootsOf(t, dir), MCPServers: []sdk.McpServer{server("1"), named}})
	_, _, end := session.prompt("Hello.", modelserver.Say("Hello."))
	require.Equal(t, sdk.StopReasonEndTurn, end.StopReason, "the model still has its key")
	for file, want := range map[string]string{"1": "TEST_MODEL_OTHER=kept", "2": "TEST_MODEL_KEY=given"} {
		require.Eventually(t, func() bool {
			_, err := os.Stat(out + file)
			return err == nil
		}, patience, 5*time.Millisecond)
		text := dirtest.Read(t, out+file)
		require.Contains(t, text, want)
		require.NotContains(t, text, key)
	}
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
	require.GreaterOrEqual(t, files, 2, "log and trace")
}

// An agent that prints the secrets that it was given before it dies, or answers with them, reveals
// them to nobody.
//
// Clauses S5, W1.
func TestAgentRevealsSecrets(t *testing.T) {
	const secret = "tangerine-s3cret"
	t.Setenv("ACP_TEST_API_KEY", "tangerine-k3y")
	for name, c := range map[string]struct{ ends, expect string }{
		"in its last words": {`echo "Zed: $KEY $TOKEN $ACP_TEST_API_KEY" >&2; exit 1`, `ended: exit status 1: Zed: [secret] [secret] [secret]; `},
		"cut off":           {`printf '%4090s%s\n' '' $KEY >&2; exit 1`, "ended: exit status 1"},
		"in an error": {
			`echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32603,"message":"bad key '$KEY'","data":{"\u0061":["'$URL'"]}}}'; cat`,
			`"message":"bad key [secret]","data":{"a":["https://example.com/s/[secret]/mcp"]}`,
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
					require.NotContains(t, dirtest.Read(t, filepath.Join(dir, file)), s)
				}
			}
		})
	}
}

// The agent behind acp-agent receives the secrets of its MCP servers. None of them is stored.
//
// Clauses S5, W1.
func TestAgentSecrets(t *testing.T) {
	t.Parallel()
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

// Signing in to an MCP server reveals no tokens, and nothing that they could be obtained with.
//
// Clauses S5, M4.
func TestSigningIn(t *testing.T) {
	t.Parallel()
	for name, capabilities := range map[string]string{"by the link in the answer": `{}`, "by elicitation": `{"elicitation":{"url":{}}}`} {
		t.Run(name, func(t *testing.T) {
			served := mcptest.New(mcptest.Options{Revision: "2025-11-25"})
			signIn := mcptest.NewSignIn(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return served.Server }, nil))
			dir := t.TempDir()
			a := startIn(t, filepath.Join(dir, "state"), "--log-level", "debug", "--trace", filepath.Join(dir, "trace"))
			a.call("initialize", json.RawMessage(`{"protocolVersion":1,"clientCapabilities":`+capabilities+`}`), nil)
			server := map[string]any{"name": "h", "type": "http", "url": signIn.URL + "/mcp", "headers": []any{}}

			// An authorization server may repeat what it was sent when it rejects it.
			for _, grant := range []string{"authorization_code", "refresh_token"} {
				signIn.Reject(grant)
				id := a.served([]string{folder(t)}, server)
				a.signIn(id, name == "by elicitation")
				require.Contains(t, a.mcpUntil(id, "/mcp", "rejected "), "[secret]")
				a.call("session/close", sessionParams(id), nil)
			}

			signIn.Reject("")
			id := a.served([]string{folder(t)}, server)
			a.signIn(id, name == "by elicitation")
			a.mcpUntil(id, "/mcp tools", "h.heard")
			require.Contains(t, a.ask(id, "/call h.heard", "allow_once").updates, "completed")

			secrets := strings.Join(signIn.Secrets(), " ")
			for _, kind := range []string{"code", "access", "refresh"} {
				require.Contains(t, secrets, "tangerine-"+kind)
			}
			a.leave()
			require.Contains(t, a.stderr.String(), "level=DEBUG")
			for _, secret := range signIn.Secrets() {
				for _, m := range a.Messages() {
					require.NotContains(t, m.Raw, secret)
				}
				require.NotContains(t, a.stderr.String(), secret)
				search(t, dir, secret)
			}
		})
	}
}

// signIn uses a session's MCP server that requires signing in, and opens the page that the user is
// asked to open.
func (a *agent) signIn(session string, elicited bool) {
	a.t.Helper()
	from := a.Count()
	prompt := a.NextID()
	a.send(rawrpc.Request(prompt, "session/prompt", promptParams(session, "/mcp tools")))
	var page string
	if elicited {
		m, _ := a.await(from, func(m rawrpc.Message) bool { return m.Method == "elicitation/create" })
		var p struct{ SessionID, Mode, URL string }
		require.NoError(a.t, json.Unmarshal(m.Params, &p))
		require.Equal(a.t, "url", p.Mode)
		require.Equal(a.t, session, p.SessionID)
		page = p.URL
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, m.ID))
	} else {
		a.await(from, func(m rawrpc.Message) bool {
			_, link, found := strings.Cut(messageText(a.t, a.updates(from, session)), "open <")
			page, _, _ = strings.Cut(link, ">")
			return found && m.Method == "session/update"
		})
	}
	res, err := http.Get(page)
	require.NoError(a.t, err)
	require.NoError(a.t, res.Body.Close())
	require.Equal(a.t, http.StatusOK, res.StatusCode)
	if elicited {
		a.await(from, func(m rawrpc.Message) bool { return m.Method == "elicitation/complete" })
	}
	_, err = a.Response(within(a.t), from, prompt)
	require.NoError(a.t, err)
}

// mcpUntil repeats a prompt until its answer contains text, and returns the answer.
func (a *agent) mcpUntil(session, prompt, text string) (answer string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		answer = a.ask(session, prompt, "").text
		return strings.Contains(answer, text)
	}, patience, time.Millisecond, text)
	return answer
}
