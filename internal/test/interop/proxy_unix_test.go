//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
