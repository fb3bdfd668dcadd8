//go:build unix

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// quoting is an agent in the shell's words that refuses to load, and says what it was sent.
const quoting = `
while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/')
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

// What an agent behind us quotes of a request in its refusal is for the client, and not for the log.
func TestW1_ARefusalOfTheAgentBehindIsLoggedWithoutWhatItQuotes(t *testing.T) {
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
	require.Contains(t, b.stderr.String(), "another way is tried")
	for _, log := range []string{a.stderr.String(), b.stderr.String()} {
		require.NotContains(t, log, secret)
		require.NotContains(t, log, words)
	}
}
