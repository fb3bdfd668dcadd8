//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/needs"
)

// The command named in the error opens the session.
//
// Clause A31.
func TestCommandInErrorOpensSession(t *testing.T) {
	needs.Programs(t, "sh")
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

// rough is a shell script that serves as an agent and writes lines that are not messages.
const rough = `
say() { printf '%b\n' "$1"; }
reply() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
chunk() { say '{"jsonrpc":"2.0",'"$2"'"method":"session/update","params":{"sessionId":"its","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while IFS= read -r line; do
	id=${line#'{"jsonrpc":"2.0","id":'} id=${id%%,*}
	case $line in
	*'"method":"initialize"'*)
		say 'Listening on nothing…'
		reply '{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*)
		reply '{"sessionId":"its"}' ;;
	*'"method":"session/prompt"'*)
		chunk 'before '
		say 'not JSON'
		say ''
		say '7'
		say '[{"jsonrpc":"2.0","method":"session/update"}]'
		say '{"jsonrpc":"1.0","method":"session/update","params":{"sessionId":"its"}}'
		say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"its",'
		say '\0377\0376'
		chunk 'raw \0377 bytes'
		chunk 'behind' '\r  \r'
		reply '{"stopReason":"end_turn"}' ;;
	esac
done
`

// Whatever the agent writes, acp-agent writes valid messages.
//
// Clause W1.
func TestGarbageFromAgent(t *testing.T) {
	t.Parallel()
	script := filepath.Join(folder(t), "rough.sh")
	require.NoError(t, os.WriteFile(script, []byte(rough), 0o600))
	a := start(t, "--", "sh", script).initialize()
	session := a.open(folder(t))
	require.Equal(t, "end_turn", a.prompt(session, "hello"))
	said := a.updates(0, session)
	require.Contains(t, said, `"before "`)
	require.Contains(t, said, `"behind"`)
	require.NotContains(t, said, "raw")
	for _, line := range a.Lines() {
		require.False(t, line.FromAgent && strings.ContainsAny(line.Text, "\r\n"), "%q", line.Text)
	}
}

// quoting is a shell script that serves as an agent, refuses to load and quotes the request.
const quoting = `
while IFS= read -r line; do
	id=${line#'{"jsonrpc":"2.0","id":'} id=${id%%,*}
	quoted=$(printf '%s' "$line" | tr '"\\' "''")
	reply() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"','"$1"'}'; }
	case $line in
	*'"method":"initialize"'*) reply '"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
	*'"method":"session/new"'*) reply '"result":{"sessionId":"its"}' ;;
	*'"method":"session/prompt"'*) reply '"error":{"code":-32603,"message":"cannot: '"$quoted"'"}' ;;
	*'"method":"session/load"'*)
		printf '%s\n' "$quoted" >&2
		reply '"error":{"code":-32603,"message":"invalid: '"$quoted"'"}' ;;
	esac
done
`

// What an agent quotes from a request in its error reaches the client, but not the log.
//
// Clause W1.
func TestAgentErrorsAreLoggedWithoutSecrets(t *testing.T) {
	t.Parallel()
	const secret, words = "tangerine-s3cret", "the words of the prompt"
	dir, cwd := folder(t), folder(t)
	script := filepath.Join(dir, "quoting.sh")
	require.NoError(t, os.WriteFile(script, []byte(quoting), 0o600))
	state := filepath.Join(dir, "state")
	params := func(id string) json.RawMessage {
		return json.RawMessage(`{` + id + `"cwd":` + quoted(cwd) + `,"mcpServers":[{"name":"n","command":"/bin/true","args":[],"env":[{"name":"TOKEN","value":"` + secret + `"}]}]}`)
	}
	a := startIn(t, state, "--", "sh", script).initialize()
	var made struct{ SessionID string }
	a.call("session/new", params(""), &made)
	m := a.try("session/prompt", promptParams(made.SessionID, words))
	require.NotNil(t, m.Error)
	require.Contains(t, m.Error.Message, words, "the client may know")
	a.leave()
	b := startIn(t, state, "--", "sh", script).initialize()
	b.call("session/load", params(`"sessionId":`+quoted(made.SessionID)+`,`), nil)
	b.leave()
	require.Contains(t, b.stderr.String(), "trying another one")
	for _, log := range []string{a.stderr.String(), b.stderr.String()} {
		require.NotContains(t, log, secret)
		require.NotContains(t, log, words)
	}
}

// greedy is a shell script that serves as an agent and lists sessions in folders of its choice. It
// records the loads.
const greedy = `
reply() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while IFS= read -r line; do
	id=${line#'{"jsonrpc":"2.0","id":'} id=${id%%,*}
	case $line in
	*'"method":"initialize"'*)
		reply '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"additionalDirectories":{}}}}' ;;
	*'"method":"session/list"'*)
		reply '{"sessions":[{"sessionId":"a","cwd":"'"$1"'","additionalDirectories":["/","/etc"]},{"sessionId":"b","cwd":"/","additionalDirectories":["/etc"]}]}' ;;
	*'"method":"session/load"'*)
		printf '%s\n' "$line" >> "$2"
		reply '{}' ;;
	esac
done
`

// An editor sends back what a list shows, so the agent's list must not choose the roots.
//
// Clause A24.
func TestListedSessionsChooseNoRoots(t *testing.T) {
	t.Parallel()
	dir, cwd := folder(t), folder(t)
	script, loads := filepath.Join(dir, "greedy.sh"), filepath.Join(dir, "loads")
	require.NoError(t, os.WriteFile(script, []byte(greedy), 0o600))
	a := start(t, "--", "sh", script, cwd, loads).initialize()
	sessions := a.list(nil)
	require.Len(t, sessions, 2)
	for _, s := range sessions {
		require.Empty(t, s.AdditionalDirectories, s.Cwd)
	}
	first := slices.IndexFunc(sessions, func(s listed) bool { return s.Cwd == cwd })
	require.GreaterOrEqual(t, first, 0)
	require.Equal(t, "/", sessions[1-first].Cwd)
	a.call("session/load", map[string]any{
		"sessionId": sessions[first].SessionID, "cwd": cwd,
		"additionalDirectories": sessions[first].AdditionalDirectories, "mcpServers": []any{},
	}, nil)
	loaded, err := os.ReadFile(loads)
	require.NoError(t, err)
	require.NotContains(t, string(loaded), "/etc")
}

// askClient has the agent behind the program send a request to the client. It reports whether that
// arrived, and what the agent was answered.
func (a *agent) askClient(session, method string, params map[string]any) (arrived bool, answer string) {
	a.t.Helper()
	from, id := a.Count(), a.NextID()
	text, err := json.Marshal(params)
	require.NoError(a.t, err)
	a.send(pipes.Request(id, "session/prompt", promptParams(session, "ask "+method+" "+string(text))))
	ended := func(m pipes.Message) bool { return m.IsResponse(strconv.Itoa(id)) }
	m, at := a.await(from, func(m pipes.Message) bool { return m.Method == method || ended(m) })
	if m.Method == method {
		a.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":"","terminalId":"t"}}`)
		a.await(at, ended)
		return true, ""
	}
	return false, a.updates(from, session)
}

// An agent replaces a root, or a file in one, and asks the editor for what is at its path.
//
// Clause C13.
func TestEditorReachesOnlyRoots(t *testing.T) {
	t.Parallel()
	for layout, additional := range map[string][]string{"nested root": {"sub"}, "root given as a link": {"link"}, "only root": nil} {
		t.Run(layout, func(t *testing.T) {
			top, victim := folder(t, "sub/file", "inside", "sub/second", ""), folder(t, "file", "outside")
			require.NoError(t, os.Symlink("sub", filepath.Join(top, "link")))
			roots := []string{top}
			if additional == nil {
				roots = []string{filepath.Join(top, "sub")}
			}
			for _, name := range additional {
				roots = append(roots, filepath.Join(top, name))
			}
			root := roots[len(roots)-1]
			a := start(t, behind()...)
			a.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{
				"fs": map[string]any{"readTextFile": true, "writeTextFile": true}, "terminal": true,
			}}, nil)
			id := a.open(roots[0], roots[1:]...)
			requests := func(name string) map[string]map[string]any {
				return map[string]map[string]any{
					"fs/read_text_file":  {"path": filepath.Join(root, name)},
					"fs/write_text_file": {"path": filepath.Join(root, name), "content": "x"},
					"terminal/create":    {"command": "ls", "cwd": root},
				}
			}
			for method, params := range requests("file") {
				arrived, answer := a.askClient(id, method, params)
				require.True(t, arrived, "%s: %s", method, answer)
			}
			refused := func(name, why string) {
				for method, params := range requests(name) {
					if method == "terminal/create" && name != "file" {
						continue
					}
					arrived, answer := a.askClient(id, method, params)
					require.False(t, arrived, method)
					require.Contains(t, answer, why, method)
				}
			}
			require.NoError(t, os.Link(filepath.Join(root, "second"), filepath.Join(victim, "second")))
			refused("second", "other hard links")
			require.NoError(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
			refused("fifo", "is a fifo")

			require.NoError(t, os.Rename(root, filepath.Join(top, "old")))
			require.NoError(t, os.Symlink(victim, root))
			refused("file", "the folder "+root+" was replaced after the session started: load the session again")
		})
	}
}
