//go:build unix

package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rough is an agent in the shell's words: it puts lines that are no messages among its own.
const rough = `
say() { printf '%b\n' "$1"; }
reply() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
chunk() { say '{"jsonrpc":"2.0",'"$2"'"method":"session/update","params":{"sessionId":"its","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/')
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

// Whatever an agent behind us writes, we write messages.
func TestW1_WhatAnAgentBehindWritesIsNoLineOfOursUnlessItIsAMessage(t *testing.T) {
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
