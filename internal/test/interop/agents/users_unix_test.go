//go:build unix

package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
)

// served starts a server with the agent behind it, and returns its address.
func (s *stage) served(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(program.Path(), append([]string{"serve", "--state-dir", s.state,
		"--listen", "127.0.0.1:0", "--"}, s.subject.command...)...)
	var stderr logtest.Text
	cmd.Env, cmd.Stderr = append(os.Environ(), s.env...), &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "standard error: %s", &stderr)
	})
	var found []string
	require.Eventually(t, func() bool {
		found = regexp.MustCompile(`serving on (\S+)/acp`).FindStringSubmatch(stderr.String())
		return found != nil
	}, patience, 10*time.Millisecond)
	return found[1]
}

// as connects a user of the server who may open the folder of the stage.
func (s *stage) as(t *testing.T, user, url string) *editor {
	t.Helper()
	token, err := exec.Command(program.Path(), "tokens", "add", user, "--within", s.cwd,
		"--state-dir", s.state).Output()
	require.NoError(t, err)
	own := *s
	own.env = append(slices.Clip(s.env), "ACP_AGENT_TOKEN="+strings.TrimSpace(string(token)))
	return own.open(t, noFiles, []string{program.Path(), "connect", url})
}

// Two users of a server have an agent with one home. What one has said reaches neither the other
// nor the other's model, under whatever id.
//
// Clauses N1, N5.
func TestUsersOfAServerWithARealAgent(t *testing.T) {
	t.Parallel()
	for _, subject := range []subject{opencode, claude} {
		t.Run("N5/"+subject.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, subject)
			bobs := onStage(t, subject)
			anas := bobs.inNewFolders(t)
			url := bobs.served(t)
			bob, ana := bobs.as(t, "bob", url), anas.as(t, "ana", url)
			his, err := bob.NewSession(within(t), client.Setup{Roots: bobs.roots(t)})
			require.NoError(t, err)
			bobs.prompt(bob, his.ID, "The secret is tangerine.", modelserver.Say("I keep it."))
			hers, err := ana.NewSession(within(t), client.Setup{Roots: anas.roots(t)})
			require.NoError(t, err)
			anas.prompt(ana, hers.ID, "Hello.", modelserver.Say("Hello."))

			alone := bobs.alone(t, noFiles)
			theirs := append(alone.listed(client.Query{Cwd: bobs.roots(t).Cwd()}), his.ID)
			alone.leave()
			require.Len(t, theirs, 2, "the agent lists its own")
			require.Equal(t, []string{hers.ID}, ana.listed(client.Query{}))
			for _, id := range theirs {
				for _, method := range []string{"session/load", "session/resume", "session/fork",
					"session/archive", "session/set_title", "session/prompt", "session/set_mode"} {
					params, err := json.Marshal(map[string]any{"sessionId": id, "cwd": anas.cwd,
						"mcpServers": []any{}, "title": "x", "modeId": "plan", "prompt": []any{}})
					require.NoError(t, err)
					_, err = ana.Call(within(t), method, params)()
					require.Error(t, err, "%s of %s", method, id)
				}
				require.NoError(t, ana.DeleteSession(within(t), id))
			}
			copied, err := ana.ForkSession(within(t), hers.ID, client.Setup{Roots: anas.roots(t)})
			require.NoError(t, err)
			for _, id := range []string{hers.ID, copied.ID} {
				for _, asked := range anas.prompt(ana, id, "What is the secret?", modelserver.Say("No idea.")) {
					require.NotContains(t, asked.Text(), "tangerine")
				}
			}
			require.Equal(t, []string{his.ID}, bob.listed(client.Query{}))
			again := bobs.prompt(bob, his.ID, "And now?", modelserver.Say("Still."))
			require.Contains(t, again[0].Text(), "tangerine")
		})
	}
}
