package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/mcptest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

//lint:file-ignore SA1019 the SDK marks all of roots as deprecated (SEP-2577)

// served creates a session with MCP servers.
func (a *agent) served(roots []string, servers ...any) string {
	a.t.Helper()
	var made struct{ SessionID string }
	a.call("session/new", map[string]any{"cwd": roots[0], "additionalDirectories": roots[1:], "mcpServers": servers}, &made)
	return made.SessionID
}

// reload loads a session with other roots.
func (a *agent) reload(id string, roots []string, servers ...any) {
	a.t.Helper()
	a.call("session/load", map[string]any{
		"sessionId": id, "cwd": roots[0], "additionalDirectories": roots[1:], "mcpServers": servers,
	}, nil)
}

// Clauses M1, M11.
func TestServerEverything(t *testing.T) {
	t.Parallel()
	server := stdioServer("e", npmtest.Everything(t))
	top, dirs := dirtest.Strange(t)
	a := start(t).initialize()
	id := a.served(dirs, server)
	haveRoots := func(answer string, dirs ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) { // it takes time to start, and to ask again
			assert.Equal(t, mcptest.URIs(a.t, dirs...), a.ask(id, "/call e.get-roots-list", answer).echoed())
		}, patience, 10*time.Millisecond)
	}
	haveRoots("allow_always", dirs...)
	more := append([]string{dirs[0], top}, dirs[3:]...)
	more = append(more, dirs[1], dirs[2])
	a.reload(id, more, server)
	haveRoots("", more...) // what was allowed always is not asked again
	a.reload(id, dirs[:1], server)
	haveRoots("allow_once", dirs[:1]...)
}

func TestServerEverythingInEverySession(t *testing.T) {
	t.Parallel()
	server := stdioServer("e", npmtest.Everything(t))
	const document = "demo://resource/static/document/features.md"
	stage := onModelStage(t)
	local := []string{"--config", filepath.Join(stage.dir, "config.json"), "--model", "local"}
	for name, args := range map[string][]string{
		"explore": nil, "model": local, "agent": {"--", program.Path(), "--state-dir", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, args...).initialize()
			id := a.served([]string{folder(t)}, server)
			listed := a.mcpUntil(id, "/mcp tools", "e.get-roots-list")
			require.Contains(t, listed, "resource "+document)
			require.Contains(t, listed, "prompt /e:args-prompt city [state]: A prompt with two arguments")
			require.Contains(t, a.ask(id, "/mcp", "").text, "These instructions are written for an LLM")
			read := a.ask(id, "/mcp read e "+document, "").text
			require.Contains(t, read, "The resource `"+document+"`")
			require.Contains(t, read, "# Everything Server")
			require.Contains(t, a.ask(id, "/mcp read e demo://none", "").text, "This did not work: MCP server e: ")
			said := a.ask(id, "/e:args-prompt Bern", "").text
			switch name {
			case "explore":
				require.Contains(t, said, "What's weather in Bern?")
				require.Contains(t, a.ask(id, "/e:args-prompt", "").text, `needs the argument "city"`)
			case "model":
				requests := stage.model.Requests()
				sent := string(requests[len(requests)-1].Body)
				require.Contains(t, sent, "What's weather in Bern?")
				require.Contains(t, sent, "These instructions are written for an LLM")
				order := modelserver.UseWith("read_resource", `{"server":"e","uri":"`+document+`"}`)
				require.Equal(t, "end_turn", a.ask(id, modelserver.Prompt("Read.", order), "").stop)
				requests = stage.model.Requests()
				require.Contains(t, string(requests[len(requests)-1].Body), "# Everything Server")
			}
		})
	}
}

// remote starts an MCP server over HTTP that requires a header. Its tool lists the roots as
// server-everything does.
func remote(t *testing.T, name, value string) *mcptest.Guarded {
	t.Helper()
	server := mcptest.New(mcptest.Options{Revision: "2025-11-25"})
	server.Add(&mcp.Tool{Name: "roots"}, func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		list, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, root := range list.Roots {
			fmt.Fprintf(&b, "   URI: %s\n", root.URI)
		}
		return b.String(), nil
	})
	return mcptest.Guard(t, name, value, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server.Server }, nil))
}

// Clauses M4, M2.
func TestHTTPServerWithHeaders(t *testing.T) {
	t.Parallel()
	const secret = "Bearer tangerine-s3cret"
	guarded := remote(t, "Authorization", secret)
	server := map[string]any{"type": "http", "name": "h", "url": guarded.URL, "headers": []any{map[string]any{"name": "Authorization", "value": secret}}}
	first, second := folder(t), folder(t)
	a := start(t, "--log-level", "debug").initialize()
	id := a.served([]string{first, second}, server)
	turn := a.ask(id, "/call h.roots", "allow_always")
	require.Equal(t, mcptest.URIs(t, first, second), turn.echoed(), turn.text)
	a.reload(id, []string{first}, server)
	require.Equal(t, mcptest.URIs(t, first), a.ask(id, "/call h.roots", "allow_always").echoed(), "connected anew")
	a.leave()
	require.Empty(t, guarded.Refused(), "without its header")
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

// Clauses A25, S5.
func TestFoundHTTPServerGetsEnvironment(t *testing.T) {
	guarded := remote(t, "Authorization", "Bearer tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_TOKEN", "tangerine-s3cret")
	t.Setenv("ACP_AGENT_INTEROP_URL", guarded.URL)
	cwd := folder(t, ".mcp.json", `{"mcpServers":{
		"found": {"type": "http", "url": "${ACP_AGENT_INTEROP_URL}", "headers": {"Authorization": "Bearer ${ACP_AGENT_INTEROP_TOKEN}"}},
		"asks":  {"command": "x", "env": {"TOKEN": "${input:token}"}}}}`)
	a := start(t, "--log-level", "debug").initialize()
	id := a.open(cwd)
	require.Contains(t, a.ask(id, "/mcp start asks", "").text, "only an editor can ask for ${input:token}")
	started := a.ask(id, "/mcp start found", "allow_once")
	require.Len(t, started.questions, 1)
	require.Contains(t, string(started.questions[0]), "${ACP_AGENT_INTEROP_URL}", "as it is written")
	require.Equal(t, mcptest.URIs(t, cwd), a.ask(id, "/call found.roots", "allow_once").echoed())
	a.leave()
	require.Empty(t, guarded.Refused(), "without its header")
	for _, line := range a.Messages() {
		require.NotContains(t, line.Raw, "s3cret")
	}
	require.NotContains(t, a.stderr.String(), "s3cret")
}

// A tool call asks for permission once per tool and folder.
//
// Clause A30.
func TestAllowAlwaysCoversToolAndFolder(t *testing.T) {
	t.Parallel()
	servers := []any{stdioServer("e", npmtest.Everything(t))}
	cwd := folder(t)
	a := start(t).initialize()
	serve := func(dir string) string {
		id := a.served([]string{dir}, servers...)
		a.mcpUntil(id, "/mcp tools", "e.echo") // calls do not wait long for servers
		return id
	}
	id := serve(cwd)
	first := a.ask(id, `/call e.echo {"message":"one"}`, "allow_always")
	require.Len(t, first.questions, 1)
	require.Contains(t, first.text, "Echo: one")
	require.Empty(t, a.ask(id, `/call e.echo {"message":"two"}`, "").questions)
	require.Len(t, a.ask(id, `/call e.get-sum {"a":1,"b":2}`, "allow_once").questions, 1)
	require.Len(t, a.ask(id, `/call e.get-sum {"a":1,"b":2}`, "reject_once").questions, 1)
	require.Empty(t, a.ask(serve(cwd), `/call e.echo {"message":"three"}`, "").questions)
	require.Len(t, a.ask(serve(folder(t)), `/call e.echo {"message":"four"}`, "allow_once").questions, 1)
}

// Servers are told whether there is a model: server-everything offers a tool that asks it only
// then.
//
// Clause M13.
func TestSamplingNeedsModel(t *testing.T) {
	t.Parallel()
	server := stdioServer("e", npmtest.Everything(t))
	explore := start(t).initialize()
	id := explore.served([]string{folder(t)}, server)
	explore.mcpUntil(id, "/mcp tools", "e.echo")
	require.Contains(t, explore.ask(id, `/call e.trigger-sampling-request {"prompt":"a"}`, "").text, "have no tool")

	stage := onModelStage(t)
	a := start(t, "--config", filepath.Join(stage.dir, "config.json"), "--model", "local").initialize()
	id = a.served([]string{folder(t)}, server)
	arguments, err := json.Marshal(map[string]string{"prompt": modelserver.Prompt("How many?", modelserver.Say("It is 42.").Aside())})
	require.NoError(t, err)
	a.mcpUntil(id, "/mcp tools", "trigger-sampling-request") // turns do not wait long for servers
	order := modelserver.UseWith("trigger-sampling-request", string(arguments)).By("e")
	turn := a.ask(id, modelserver.Prompt("Ask.", order), "allow_once")
	require.Len(t, turn.questions, 3, "for the tool, the request and the answer")
	require.Contains(t, string(turn.questions[1]), "How many?")
	require.Contains(t, string(turn.questions[1]), "You are a helpful test server.")
	require.Contains(t, string(turn.questions[2]), "It is 42.")
	require.Contains(t, turn.updates, "LLM sampling result")
	a.leave()
	require.Contains(t, a.stderr.String(), `msg="MCP server asked the model"`)
	require.NotContains(t, a.stderr.String(), "How many?")
}

// stdioServer returns an MCP server as a client configures it.
func stdioServer(name string, command []string) map[string]any {
	return map[string]any{"name": name, "command": command[0], "args": command[1:], "env": []any{}}
}

// asking is a turn that requested permission.
type asking struct {
	stop, text, updates string
	questions           []json.RawMessage // the params, in order
}

// ask runs a turn and answers each permission request with an option of the given kind.
func (a *agent) ask(session, text, answer string) asking {
	a.t.Helper()
	began, id := a.Count(), a.NextID()
	a.send(rawrpc.Request(id, "session/prompt", promptParams(session, text)))
	var turn asking
	for from := began; ; {
		m, at := a.await(from, func(m rawrpc.Message) bool {
			return m.Method == "session/request_permission" || m.IsResponse(fmt.Sprint(id))
		})
		if m.Method == "" {
			turn.stop = stopReason(a.t, m)
			break
		}
		from = at + 1
		turn.questions = append(turn.questions, m.Params)
		var q struct {
			Options []struct{ OptionID, Kind string }
		}
		require.NoError(a.t, json.Unmarshal(m.Params, &q))
		chosen := ""
		for _, o := range q.Options {
			if o.Kind == answer {
				chosen = o.OptionID
			}
		}
		require.NotEmpty(a.t, chosen, "%s", m.Params)
		a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, m.ID, chosen))
	}
	turn.updates = a.updates(began, session)
	turn.text = messageText(a.t, turn.updates)
	return turn
}

// messageText returns the text of the messages among updates.
func messageText(t *testing.T, updates string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(updates) {
		var u struct {
			SessionUpdate string
			Content       json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &u))
		var block struct{ Text string }
		if u.SessionUpdate == "agent_message_chunk" {
			require.NoError(t, json.Unmarshal(u.Content, &block))
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// echoed returns the URIs in the answer of the server's roots tool, in order.
func (a asking) echoed() []string { return npmtest.Echoed(a.text) }

// The user is asked in each session about a program that lies in a folder, and it is not restarted.
//
// Clause A25.
func TestScriptInAFolderIsAskedAbout(t *testing.T) {
	t.Parallel()
	cwd := folder(t, ".mcp.json", `{"mcpServers":{"found":{"command":"sh","args":["./srv.sh"]},"shell":{"command":"sh","args":["-c",". \"$PWD/srv.sh\""]}}}`,
		"srv.sh", "touch started\n")
	a := start(t).initialize()
	id := a.open(cwd)
	first := a.ask(id, "/mcp start found", "allow_once")
	require.Len(t, first.questions, 1)
	require.Contains(t, string(first.questions[0]), "srv.sh")
	require.NotContains(t, string(first.questions[0]), "allow_always")
	require.FileExists(t, filepath.Join(cwd, "started"))

	require.NoError(t, os.WriteFile(filepath.Join(cwd, "srv.sh"), []byte("touch swapped\n"), 0o600))
	again := a.ask(a.open(cwd), "/mcp start found", "reject_once")
	require.Len(t, again.questions, 1)
	require.Eventually(t, func() bool {
		return strings.Contains(a.ask(id, "/mcp", "").text, "MCP server **`found`** (stdio): failed")
	}, patience, 10*time.Millisecond, "it is not restarted")
	require.NoFileExists(t, filepath.Join(cwd, "swapped"))

	shell := a.ask(id, "/mcp start shell", "reject_once")
	require.Len(t, shell.questions, 1)
	require.NotContains(t, string(shell.questions[0]), "allow_always")
}

// A found server does not get what its configuration does not name.
//
// Clause A25.
func TestFoundServerGetsNamedEnvironment(t *testing.T) {
	needs.Programs(t, "sh")
	t.Setenv("ACP_AGENT_INTEROP_SECRET", "tangerine")
	t.Setenv("ACP_AGENT_INTEROP_NAMED", "clementine")
	cwd := folder(t, ".mcp.json", `{"mcpServers":{"found":{"command":"./srv.sh","env":{"NAMED":"${ACP_AGENT_INTEROP_NAMED}"}}}}`, "srv.sh", "#!/bin/sh\nenv > env.txt\n")
	require.NoError(t, os.Chmod(filepath.Join(cwd, "srv.sh"), 0o700))
	a := start(t).initialize()
	started := a.ask(a.open(cwd), "/mcp start found", "allow_once")
	require.Len(t, started.questions, 1)
	content := dirtest.Read(t, filepath.Join(cwd, "env.txt"))
	require.Contains(t, content, "NAMED=clementine\n")
	require.Contains(t, content, "PATH="+os.Getenv("PATH")+"\n")
	require.NotContains(t, content, "tangerine")
}
