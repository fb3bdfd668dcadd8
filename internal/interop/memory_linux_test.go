package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/interop/program"
)

// deaf is a shell script that serves as an agent. When prompted it reads a file $1 times, and never reads the responses.
const deaf = `
reply() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/')
	case $line in
	*'"method":"initialize"'*) reply '{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) reply '{"sessionId":"its"}' ;;
	*'"method":"session/prompt"'*)
		n=0
		while [ $n -lt "$1" ]; do
			n=$((n + 1))
			printf '{"jsonrpc":"2.0","id":"%s","method":"fs/read_text_file","params":{"sessionId":"its","path":"%s"}}\n' $n "$2"
		done
		exec sleep 600 ;;
	esac
done
`

// An agent that reads files through the client but not the responses does not fill acp-agent's memory with them.
func TestW11_MemoryWithAgentThatDoesNotRead(t *testing.T) {
	const reads, limit = 600, 400 // of 1 MiB each, and MiB
	cwd := folder(t, "f", "")
	script := filepath.Join(folder(t), "deaf.sh")
	require.NoError(t, os.WriteFile(script, []byte(deaf), 0o600))
	cmd := exec.CommandContext(within(t), program.Path(), "--state-dir", t.TempDir(), "--", "sh", script, strconv.Itoa(reads), filepath.Join(cwd, "f"))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	}()
	lines := bufio.NewReader(out)
	read := func() (m pipes.Message) {
		line, err := lines.ReadBytes('\n')
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(line, &m))
		return m
	}
	call := func(id int, method string, params any) {
		_, err := fmt.Fprintln(in, pipes.Request(id, method, params))
		require.NoError(t, err)
	}
	call(1, "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true}}})
	read()
	call(2, "session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
	var session struct{ SessionID string }
	require.NoError(t, read().Decode(&session))
	call(3, "session/prompt", promptParams(session.SessionID, "go"))
	result := `,"result":{"content":"` + strings.Repeat("x", 1<<20) + `"}}`
	for answered := 0; answered < reads; {
		if m := read(); m.Method == "fs/read_text_file" {
			answered++
			_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%s%s`+"\n", m.ID, result)
			require.NoError(t, err)
		}
	}
	call(4, "session/list", map[string]any{}) // answered after all that was read before
	for string(read().ID) != "4" {
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	require.NoError(t, err)
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, peak)
	kib, err := strconv.Atoi(string(peak[1]))
	require.NoError(t, err)
	t.Logf("peak: %d MiB", kib>>10)
	require.Less(t, kib>>10, limit)
}
