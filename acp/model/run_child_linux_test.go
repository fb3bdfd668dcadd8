package model

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/sandbox/hosts"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Nothing of a command outlives its call: not what it leaves in the background, what ignores
// SIGTERM, or what leaves its process group.
func TestChildLeavesNothing(t *testing.T) {
	needShell(t)
	mark := proctest.NewMark(t)
	e := open(t, setup{options: Options{Environment: append(os.Environ(), mark.Env())}})
	e.answer(allowOnce)
	e.prompt("Run.", run("sleep 1000 & echo left"))
	require.Equal(t, "left\n[exit code 0]", lastResult(e))
	require.Empty(t, mark.Processes())

	r := e.prompt("Run.", run("trap '' TERM; echo begun; sleep 1000 & sleep 1000; sleep 1000",
		"timeout_seconds", 1))
	require.Equal(t, "begun\n[killed, because it had not ended after 1s]", lastResult(e))
	require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
	require.Empty(t, mark.Processes())

	if _, err := exec.LookPath("setsid"); err == nil {
		e.prompt("Run.", run("setsid sleep 1000 & echo left"))
		require.Equal(t, "left\n[exit code 0]", lastResult(e))
		require.Empty(t, mark.Processes())
	}
}

func TestCancelledChild(t *testing.T) {
	needShell(t)
	mark := proctest.NewMark(t)
	begun := func(u update) bool { return strings.Contains(string(u.Content), "begun") }
	for _, method := range []string{"session/cancel", "session/close", "session/load"} {
		t.Run(method, func(t *testing.T) {
			e := open(t, setup{options: Options{Environment: append(os.Environ(), mark.Env())}})
			e.answer(allowOnce)
			if method == "session/cancel" {
				e.cancelAfter(begun)
				r := e.prompt("Run.", run("trap '' TERM; echo begun; sleep 1000; sleep 1000"))
				require.Equal(t, sdk.StopReasonCancelled, r.stop)
				require.Equal(t, sdk.ToolCallStatusFailed, r.calls()[0].Status)
				require.Empty(t, mark.Processes())
				e.goOn()
				require.Contains(t, e.results()[0], "interrupted")
				return
			}
			running := make(chan struct{}, 100)
			e.onUpdate = func(u update) {
				if begun(u) {
					running <- struct{}{}
				}
			}
			ended := e.begin("Run.", run("echo begun; sleep 1000"))
			<-running
			e.call(method, map[string]any{"cwd": e.setup.roots[0], "mcpServers": []any{}})
			<-ended
			require.Empty(t, mark.Processes())
		})
	}
}

// The model and the user learn which hosts the sandbox refused a command.
//
// Clause X7.
func TestChildHasAListOfHosts(t *testing.T) {
	needShell(t)
	needs.Programs(t, "curl")
	settings := sandbox.Settings{Mode: sandbox.Write, Hosts: hosts.Hosts{Limited: true}}
	e := open(t, setup{options: Options{Sandbox: func(string) sandbox.Settings { return settings }}})
	e.answer(allowOnce)
	e.prompt("Run.", run("curl -s -o /dev/null http://a.example/; echo ran"))
	require.Equal(t, "[acp-agent's sandbox does not allow a.example:80, because it is not in sandboxHosts]\n"+
		"ran\n[exit code 0]", lastResult(e))
}
