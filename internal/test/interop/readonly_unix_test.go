//go:build unix

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// declares returns flags by which the folder of a session in app is declared.
func declares(t *testing.T, app, dep string, readOnly bool) []string {
	t.Helper()
	return []string{"--config", configFile(t, map[string]any{"workspaces": []any{map[string]any{
		"cwd": app, "directories": []any{map[string]any{"path": dep, "readOnly": readOnly}}}}})}
}

// initializeAsEditor initializes the connection as a client with files and terminals.
func (a *agent) initializeAsEditor() *agent {
	a.t.Helper()
	a.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{
		"fs": map[string]any{"readTextFile": true, "writeTextFile": true}, "terminal": true}}, nil)
	return a
}

// A folder that the user declared to be read only stays so in every session: whatever a client
// names or leaves out, after a load, a resume and a fork, for the agent's files and terminals.
//
// Clause A39.
func TestReadOnlyFolderStaysSo(t *testing.T) {
	app, dep := folder(t, "f", "of app"), folder(t, "f", "of dep", "sub/f", "of dep")
	alias := filepath.Join(folder(t), "alias")
	require.NoError(t, os.Symlink(dep, alias))
	before := dirtest.Planted(t, dep)
	state := filepath.Join(folder(t), "state")
	a := startIn(t, state, append(declares(t, app, dep, true), behind()...)...).initializeAsEditor()
	refused := func(session string) {
		t.Helper()
		for _, path := range []string{dep + "/f", dep + "/new", alias + "/f", app + "/../" + filepath.Base(dep) + "/f"} {
			said := a.says(session, `ask fs/write_text_file {"content":"x","path":`+quoted(path)+`}`)
			require.Regexp(t, "is read-only|outside", said, path)
			require.NotContains(t, said, "unsupported")
		}
		from := a.Count()
		require.Contains(t, a.says(session,
			`ask terminal/create {"command":"touch","args":[`+quoted(dep+"/new")+`]}`), "is read-only")
		for _, m := range a.Messages()[from:] {
			require.NotContains(t, []string{"fs/write_text_file", "terminal/create"}, m.Method)
		}
		require.Contains(t, a.shown(session), "read-only")
	}
	omitted := a.open(app)
	refused(omitted)

	for _, named := range [][]string{{dep}, {alias}, {dep, alias}, {dep + "/sub", dep}} {
		refused(a.open(app, named...))
	}
	params := func(cwd string, dirs ...string) map[string]any {
		p := map[string]any{"sessionId": omitted, "cwd": cwd, "mcpServers": []any{}}
		if dirs != nil {
			p["additionalDirectories"] = dirs
		}
		return p
	}
	a.call("session/resume", params(app, dep), nil)
	refused(omitted)
	// Nothing declares it any more, but the session has been told.
	a.leave()
	a = startIn(t, state, behind()...).initializeAsEditor()
	a.call("session/load", params(app, dep), nil)
	refused(omitted)
	for _, p := range []map[string]any{params(app, dep), params(dep, app), params(dep+"/sub", alias)} {
		var fork struct{ SessionID string }
		a.call("session/fork", p, &fork)
		require.Contains(t, a.says(fork.SessionID,
			`ask fs/write_text_file {"content":"x","path":`+quoted(dep+"/sub/f")+`}`), "is read-only")
	}
	require.Equal(t, before, dirtest.Planted(t, dep))
}

// Every way into a read-only folder is refused, and says why. The same ways lead into the folder if
// it is not read-only.
//
// Clause A39.
func TestWaysIntoReadOnlyFolders(t *testing.T) {
	needs.Programs(t, "git")
	const why = "is read-only"
	for _, readOnly := range []bool{true, false} {
		t.Run(fmt.Sprintf("read-only %v", readOnly), func(t *testing.T) {
			app := folder(t, "f", "of app", "sub/f", "")
			dep := repository(t, "f", "of dep", "sub/f", "of dep", "Upper", "")
			up := app + "/../" + filepath.Base(dep)
			alias := filepath.Join(folder(t), "alias")
			require.NoError(t, os.Symlink(dep, alias))
			for name, to := range map[string]string{"to-f": dep + "/f", "to-new": dep + "/new", "to-dep": dep} {
				require.NoError(t, os.Symlink(to, filepath.Join(app, name)))
			}
			before := dirtest.Planted(t, dep)
			a := start(t, append(declares(t, app, dep, readOnly), behind()...)...).initializeAsEditor()
			session := a.open(app)
			n := 0
			asked := func(method, params string) string {
				from := len(a.Messages())
				text := "ask " + method + " " + params
				if readOnly {
					a.prompt(session, text)
					for _, m := range a.Messages()[from:] {
						require.NotEqual(t, method, m.Method, "the editor is not asked")
					}
					return a.updates(from, session)
				}
				n++
				id := fmt.Sprintf(`"way %d"`, n)
				prompt, err := json.Marshal(promptParams(session, text))
				require.NoError(t, err)
				a.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt","params":` + string(prompt) + `}`)
				m, _ := a.await(from, func(m rawrpc.Message) bool { return m.Method == method || string(m.ID) == id })
				require.Equal(t, method, m.Method, "%s: the editor is asked", params)
				a.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32603,"message":"not now"}}`)
				a.await(from, func(m rawrpc.Message) bool { return string(m.ID) == id })
				return a.updates(from, session)
			}
			ways := map[string]func() string{}
			for _, path := range []string{dep + "/f", dep + "/new", dep + "/sub/new", dep + "/UPPER", dep + "/sub/../f",
				up + "/f", app + "/to-f", app + "/to-new", app + "/to-dep/sub/f"} {
				ways["editor "+path] = func() string {
					return asked("fs/write_text_file", `{"content":"x","path":`+quoted(path)+`}`)
				}
			}
			for _, line := range []string{"touch DEP/new", "rm DEP/f", "rm -rf to-dep/sub", "mkdir DEP/d", "rmdir DEP/sub",
				"mv DEP/f f2", "mv f DEP/f2", "cp f DEP/f", "ln f DEP/hard", "ln DEP/f hard", "ln -s f DEP/link", "chmod 777 DEP/f",
				"truncate -s 0 DEP/f", "dd if=f of=DEP/f", "tee DEP/f", "sed -i s/o/x/ DEP/f", "git -C DEP commit -am x",
				"git -C DEP checkout -b other", "git worktree add DEP/tree", "sh -c 'echo x > DEP/f'"} {
				for i, dir := range []string{dep, alias} {
					words := []string{"sh", "-c", strings.ReplaceAll(line, "DEP", dir)}
					ways[fmt.Sprintf("terminal %d %s", i, line)] = func() string {
						return asked("terminal/create", fmt.Sprintf(`{"command":%q,"args":[%q,%s]}`, words[0], words[1], quoted(words[2])))
					}
				}
			}
			ways["terminal in it"] = func() string {
				return asked("terminal/create", `{"command":"touch","args":["new"],"cwd":`+quoted(dep)+`}`)
			}
			require.Greater(t, len(ways), 30)
			for name, way := range ways {
				if readOnly {
					require.Contains(t, way(), why, name)
				} else {
					require.NotContains(t, way(), why, name)
				}
			}
			require.Equal(t, before, dirtest.Planted(t, dep))
		})
	}
}

// Our own tools refuse, too, in a session and over MCP, and say why.
//
// Clause A39.
func TestToolsOfReadOnlyFolders(t *testing.T) {
	app, dep := folder(t, "f", "of app"), folder(t, "f", "of dep")
	require.NoError(t, os.Symlink(dep, filepath.Join(app, "to-dep")))
	before := dirtest.Planted(t, dep)
	server, err := program.Start(program.Options{Stderr: &logtest.Text{},
		Command: []string{program.Path(), "mcp", "--dir", app, "--read-dir", dep}})
	require.NoError(t, err)
	call := func(method string, params any) rawrpc.Message {
		t.Helper()
		m, err := server.Call(within(t), method, params)
		require.NoError(t, err)
		return m
	}
	call("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "t", "version": "1"}})
	require.NoError(t, server.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	for tool, arguments := range map[string]map[string]any{
		"write_file":       {"path": dep + "/f", "content": "x"},
		"edit_file":        {"path": "to-dep/f", "edits": []any{map[string]any{"oldText": "of dep", "newText": "x"}}},
		"create_directory": {"path": dep + "/new"},
		"delete_file":      {"path": dep + "/f"},
		"move_file":        {"source": dep + "/f", "destination": "f2"},
	} {
		m := call("tools/call", map[string]any{"name": tool, "arguments": arguments})
		require.Nil(t, m.Error, tool)
		require.Contains(t, string(m.Result), "is read-only", tool)
	}
	m := call("tools/call", map[string]any{"name": "move_file",
		"arguments": map[string]any{"source": "f", "destination": dep + "/f2"}})
	require.Contains(t, string(m.Result), "is read-only")
	m = call("tools/call", map[string]any{"name": "list_roots", "arguments": map[string]any{}})
	require.Contains(t, string(m.Result), "[read-only]")
	require.Equal(t, before, dirtest.Planted(t, dep))
	require.NoError(t, server.CloseInput())
	_, err = server.Wait(within(t))
	require.NoError(t, err)
}
