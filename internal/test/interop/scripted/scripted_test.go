package scripted_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
	"github.com/acp-agent/acp-agent/internal/test/interop/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run has the agent answer lines.
func run(t *testing.T, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, scripted.Serve(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out))
	return out.String()
}

// ending closes the input of an agent once it has answered a prompt.
type ending struct {
	bytes.Buffer
	in *io.PipeWriter
}

func (e *ending) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("stopReason")) {
		_ = e.in.Close()
	}
	return e.Buffer.Write(p)
}

// finish has the agent answer lines, the last a prompt, and take its time.
func finish(t *testing.T, lines ...string) string {
	t.Helper()
	in, client := io.Pipe()
	out := &ending{in: client}
	go func() { _, _ = io.WriteString(client, strings.Join(lines, "\n")+"\n") }()
	require.NoError(t, scripted.Serve(in, out))
	return out.String()
}

func prompt(id int, text string) string {
	return pipes.Request(id, "session/prompt", map[string]any{"sessionId": "scripted-0", "prompt": []any{map[string]string{"type": "text", "text": text}}})
}

var opened = pipes.Request(1, "session/new", map[string]any{"cwd": "/a", "additionalDirectories": []string{"/b"}})

func TestScripts(t *testing.T) {
	cancel := pipes.Notification("session/cancel", map[string]any{"sessionId": "scripted-0"})
	require.Contains(t, run(t, opened, prompt(2, "say hello you")), `"text":"hello you"`)
	require.Contains(t, run(t, opened, prompt(2, "roots")), `"text":"/a\n/b"`)
	require.Equal(t, 3, strings.Count(finish(t, opened, prompt(2, "stream 3")), "agent_message_chunk"))
	require.Contains(t, run(t, opened, prompt(2, "stream 1000000"), cancel), `{"stopReason":"cancelled"}`)
	require.Contains(t, run(t, opened, prompt(2, "wait"), cancel), `{"stopReason":"cancelled"}`)
	require.Contains(t, run(t, opened, prompt(2, "wait")), `{"stopReason":"cancelled"}`, "the end of input ends what runs")
	require.Contains(t, run(t, opened, prompt(2, "stubborn"), cancel), `{"stopReason":"end_turn"}`)
	require.Contains(t, run(t, pipes.Request(1, "no/such", nil)), `-32601`)
	require.Empty(t, run(t, pipes.Notification("no/such", nil)))
}

func ExampleServe() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/src","mcpServers":[]}}` + "\n")
	if err := scripted.Serve(in, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: {"jsonrpc":"2.0","id":1,"result":{"sessionId":"scripted-0"}}
}
