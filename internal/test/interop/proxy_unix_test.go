//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
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
	require.Contains(t, b.stderr.String(), "rejected a request for a session")
	for _, log := range []string{a.stderr.String(), b.stderr.String()} {
		require.NotContains(t, log, secret)
		require.NotContains(t, log, words)
	}
}
