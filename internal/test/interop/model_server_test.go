package interop

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
)

// startMock starts a model server by others, whose answers are in testdata/aimock.json, and returns
// its address.
func startMock(t *testing.T) string {
	t.Helper()
	script := npmtest.File(t, "testdata/node-models", "@copilotkit/aimock/dist/cli.js")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, npmtest.Node(t), script, "--port", "0", "--fixtures", "testdata/aimock.json", "--strict")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
			return url
		}
	}
	require.Fail(t, "the server did not start")
	return ""
}

// The program works with a server by people who compare it with the real ones every day, in both of
// its formats.
func TestModelServerByOthers(t *testing.T) {
	t.Parallel()
	url := startMock(t)
	for api, model := range map[string]string{
		"openai":    fmt.Sprintf(`"baseURL": %q, "name": "gpt-5"`, url+"/v1"),
		"anthropic": fmt.Sprintf(`"baseURL": %q, "name": "claude-opus-4-5", "api": "anthropic"`, url),
		"responses": fmt.Sprintf(`"baseURL": %q, "name": "gpt-5", "api": "responses"`, url+"/v1"),
	} {
		t.Run(api, func(t *testing.T) {
			stage := onModelStage(t)
			stage.configure(t, model)
			e := stage.edit(t)
			session := stage.open(e, client.Setup{Roots: rootsOf(t, folder(t, "a.txt", "apple\n", "b.txt", "banana\n"))})

			said, _, end := session.prompt("Please explain.")
			require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
			require.Equal(t, "Hmm. That is not easy to say.", chunks(said, `"agent_thought_chunk"`))
			require.Equal(t, "It is a banana, naïve as it may be: 香蕉.", chunks(said, `"agent_message_chunk"`))

			said, _, end = session.prompt("Please look.")
			require.Equal(t, sdk.StopReasonEndTurn, end.StopReason)
			require.Equal(t, "I look.Seen.", chunks(said, `"agent_message_chunk"`))
			require.Len(t, updates(said, `"sessionUpdate":"tool_call"`), 2)
			require.Len(t, updates(said, `"status":"completed"`), 2)

			_, _, end = session.prompt("Please reach the limit.")
			require.Equal(t, sdk.StopReasonMaxTokens, end.StopReason)

			said, _, _ = session.prompt("Please refuse.")
			require.Contains(t, chunks(said, `"agent_message_chunk"`), "No such key")
		})
	}
}
