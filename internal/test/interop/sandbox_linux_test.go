package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// terminalRequest is the params of terminal/create.
type terminalRequest struct {
	Command, Cwd string
	Args         []string
	Env          []struct{ Name, Value string }
}

// editors are the ways in which editors run the command of a terminal.
var editors = map[string]func(terminalRequest) *exec.Cmd{
	"spawns": func(r terminalRequest) *exec.Cmd { return exec.Command(r.Command, r.Args...) },
	"joins the words for a shell": func(r terminalRequest) *exec.Cmd {
		return exec.Command("/bin/sh", "-c", r.Command+" "+strings.Join(r.Args, " "))
	},
	"quotes the arguments for a shell": func(r terminalRequest) *exec.Cmd {
		return exec.Command("/bin/bash", append([]string{"-c", r.Command + ` "$@"`, "bash"}, r.Args...)...)
	},
}

// run runs the command of a terminal as an editor does, and returns what it printed.
func (r terminalRequest) run(t *testing.T, editor string) string {
	t.Helper()
	cmd := editors[editor](r)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = r.Cwd, &out, &out, os.Environ()
	for _, v := range r.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	_ = cmd.Run()
	return out.String()
}

// startRestricted starts the program with the scripted agent in the sandbox, for a client that
// offers terminals. The agent's temporary directory is not the one that everything here is in.
func startRestricted(t *testing.T, mode string, deny ...string) *agent {
	t.Helper()
	config := configFile(t, map[string]any{"permissions": map[string]any{"deny": deny}, "agents": map[string]any{"scripted": map[string]any{
		"command": proctest.Executable(), "sandbox": mode, "env": map[string]string{"TMPDIR": folder(t)},
		"sandboxRead": []string{filepath.Dir(proctest.Executable())},
	}}})
	a := start(t, "--config", config, "--agent", "scripted")
	a.call("initialize", map[string]any{"protocolVersion": 1,
		"clientCapabilities": map[string]any{"terminal": true}}, nil)
	return a
}

// asksFor lets the agent ask for a terminal, and returns what reaches the client, or the error that
// the agent gets.
func (a *agent) asksFor(session, cwd string, request map[string]any) (r *terminalRequest, refused string) {
	a.t.Helper()
	from, id := a.Count(), a.NextID()
	request["cwd"] = cwd
	params, err := json.Marshal(request)
	require.NoError(a.t, err)
	a.send(rawrpc.Request(id, "session/prompt", promptParams(session, "ask terminal/create "+string(params))))
	m, _ := a.await(from, func(m rawrpc.Message) bool {
		return m.Method == "terminal/create" || m.IsResponse(fmt.Sprint(id))
	})
	if m.Method == "" {
		return nil, a.updates(from, session)
	}
	require.NoError(a.t, json.Unmarshal(m.Params, &r))
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"terminalId":"t"}}`, m.ID))
	a.await(from, func(m rawrpc.Message) bool { return m.IsResponse(fmt.Sprint(id)) })
	return r, ""
}

// An editor's terminal holds what an agent in the sandbox runs there as the sandbox holds the
// agent.
//
// Clause X5.
func TestTerminalsOfARestrictedAgent(t *testing.T) {
	t.Parallel()
	if program.Path() == "" {
		t.Skip("needs the program")
	}
	for _, mode := range []string{"write", "strict"} {
		root, inner, out := folder(t, "sub/x", ""), folder(t), folder(t, "secret", "SECRET")
		link := filepath.Join(root, "sub")
		a := startRestricted(t, mode)
		session := a.open(root, link, inner)
		evil := filepath.Join(out, "evil")
		write := "echo >" + evil
		for editor := range editors {
			r, _ := a.asksFor(session, root, map[string]any{"command": "sh",
				"args": []string{"-c", `echo "$X" >f; echo done; cat ` + out + "/secret; " + write},
				"env":  []any{map[string]string{"name": "X", "value": "a b"}}})
			require.NotNil(t, r)
			said := r.run(t, editor)
			require.Contains(t, said, "done\n", editor)
			require.Equal(t, mode == "write", strings.Contains(said, "SECRET"), said)
			require.Equal(t, "a b\n", dirtest.Read(t, filepath.Join(root, "f")))
			require.NoError(t, os.Remove(filepath.Join(root, "f")))
			for _, request := range []map[string]any{
				{"command": write}, {"command": "true;" + write},
				{"command": "true", "args": []string{";", write}},
				{"command": "true", "args": []string{"$(" + write + ")", "\n" + write}},
				{"command": "sh", "args": []string{"-c", write}, "shell": true, "Command": write},
				{"command": "sh", "args": []string{"-c", write}, "env": []any{
					map[string]string{"name": "ACP_AGENT_DEFERRED", "value": "{}"},
					map[string]string{"name": "LD_PRELOAD", "value": root + "/x.so"},
					map[string]string{"name": "PATH", "value": root}}},
				{"command": "sh", "args": []string{"-c", "ln -sfn " + out + " " + inner + "/l; echo >" + inner + "/l/evil"}},
			} {
				if r, _ := a.asksFor(session, root, request); r != nil {
					r.run(t, editor)
				}
				require.NoFileExists(t, evil, "%s %v", editor, request)
			}
		}
		// a root that is replaced after the session was opened
		require.NoError(t, os.RemoveAll(link))
		require.NoError(t, os.Symlink(out, link))
		if r, _ := a.asksFor(session, root, map[string]any{"command": "sh", "args": []string{"-c", write}}); r != nil {
			r.run(t, "spawns")
		}
		require.NoFileExists(t, evil)
		require.Contains(t, a.says(session, "ask terminal/exec {\"x\":1}"), "is not offered to an agent in acp-agent's sandbox")
		require.Contains(t, a.says(session, "/roots"),
			"Sandbox of the agent: "+mode+"; so are its commands in the editor's terminals")
		a.leave()
	}
}

// A rule about a command finds it although the sandbox has another one start it.
//
// Clause R5.
func TestRulesOfARestrictedAgent(t *testing.T) {
	t.Parallel()
	if program.Path() == "" {
		t.Skip("needs the program")
	}
	root := folder(t)
	a := startRestricted(t, "write", "run git push")
	session := a.open(root)
	for _, request := range []map[string]any{
		{"command": "git", "args": []string{"push"}},
		{"command": "sh", "args": []string{"-c", strings.Repeat("true;", 100) + "'git' push"}},
	} {
		r, refused := a.asksFor(session, root, request)
		require.Nil(t, r)
		require.Contains(t, refused, "git push")
		require.Contains(t, refused, "denies it")
	}
	r, _ := a.asksFor(session, root, map[string]any{"command": "git", "args": []string{"pull"}})
	require.NotNil(t, r)
	a.leave()
}

// A root that the agent has replaced by a link is not given to its next process.
//
// Clause X6.
func TestPlantedRootIsRefused(t *testing.T) {
	t.Parallel()
	root, out := folder(t, "sub/x", ""), folder(t)
	sub := filepath.Join(root, "sub")
	a := startRestricted(t, "write")
	session := a.open(root, sub)
	r, _ := a.asksFor(session, root, map[string]any{"command": "sh",
		"args": []string{"-c", "rm -r sub; ln -s " + out + " sub"}})
	require.NotNil(t, r)
	r.run(t, "spawns")
	target, err := os.Readlink(sub)
	require.NoError(t, err)
	require.Equal(t, out, target, "the agent may do that")
	for _, method := range []string{"session/new", "session/load", "session/resume", "session/fork"} {
		params := map[string]any{"cwd": root, "additionalDirectories": []string{sub}, "mcpServers": []any{}}
		if method != "session/new" {
			params["sessionId"] = session
		}
		m := a.try(method, params)
		require.NotNil(t, m.Error, method)
		require.Contains(t, m.Error.Message, "through the link "+sub, method)
	}
	session = a.open(root)
	r, _ = a.asksFor(session, root, map[string]any{"command": "sh", "args": []string{"-c", "echo >sub/evil; echo >f"}})
	require.NotNil(t, r)
	r.run(t, "spawns")
	require.FileExists(t, filepath.Join(root, "f"))
	require.NoFileExists(t, filepath.Join(out, "evil"))
}
