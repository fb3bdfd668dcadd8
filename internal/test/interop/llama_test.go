package interop

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// A model that llama.cpp runs calls tools and answers. Its weights are random, so it makes no
// sense, and often fails; but what it does is well formed, and the program copes with it.
func TestRealEngine(t *testing.T) {
	const dir = "../../../testdata/node-llama"
	if _, err := os.Stat(filepath.Join(dir, "node_modules/node-llama-cpp")); err != nil {
		t.Skip("llama.cpp is not installed: run make smoke-model, which installs it")
	}
	cmd := exec.Command(npmtest.Node(t), filepath.Join(dir, "server.mjs"), "a.txt", "banana")
	cmd.Stderr = os.Stderr
	in, out := startPiped(t, cmd)
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, cmd.Wait())
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the server did not start")

	stage := onModelStage(t)
	stage.configure(t, fmt.Sprintf(`"baseURL": %q`, lines.Text()+"/v1"))
	e := stage.edit(t)
	session := stage.open(e, client.Setup{Roots: rootsOf(t, folder(t, "a.txt", "banana\n"))})
	calls, completed := 0, 0
	const turns = 5
	for i := range turns {
		from := e.count()
		end, err := e.Prompt(within(t), session.id, sdk.TextBlock(fmt.Sprintf("What is fruit number %d?", i)))
		require.NoError(t, err, "standard error: %s", e.stderr)
		require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
		said := e.said(from)
		require.Contains(t, said, `"agent_message_chunk"`)
		calls += len(updates(said, `"sessionUpdate":"tool_call"`))
		completed += len(updates(said, `"status":"completed"`))
		for _, update := range updates(said, `"sessionUpdate":"tool_call`) {
			t.Logf("%.300s", update)
		}
	}
	require.GreaterOrEqual(t, calls, turns)
	require.NotZero(t, completed, "all tool calls failed")
}
