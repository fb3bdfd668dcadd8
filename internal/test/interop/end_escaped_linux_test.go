package interop

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Clause W9.
func TestDescendantsOfTheAgentEnd(t *testing.T) {
	t.Parallel()
	needs.Programs(t, "setsid")
	const later = "</dev/null >/dev/null 2>&1" // keeps none of the agent's streams open
	var (
		background = "sleep 600 " + later + " &"
		nohup      = "nohup sleep 600 " + later + " &"
		setsid     = "(setsid sleep 600 " + later + " &);"
	)
	eof := func(a *agent) error { return a.CloseInput() }
	term := func(a *agent) error { return a.Signal(syscall.SIGTERM) }
	kill := func(a *agent) error { a.kill(); return nil }
	for _, c := range []struct {
		name, script string
		end          func(*agent) error
	}{
		{"end of input/nohup", nohup, eof},
		{"end of input/setsid", setsid, eof},
		{"SIGTERM/setsid", setsid, term},
		{"SIGKILL/background", background, kill},
		{"SIGKILL/nohup", nohup, kill},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := proctest.NewMark(t)
			script := fmt.Sprintf(`%s=%q; export %[1]s; %[3]s exec "$0"`,
				proctest.MarkVariable, string(mark), c.script)
			a := start(t, "--", "sh", "-c", script, proctest.Executable()).initialize()
			a.open(folder(t))
			require.Eventually(t, func() bool { return len(mark.Processes()) >= 2 }, patience,
				10*time.Millisecond, "an agent and its descendant")
			began := time.Now()
			require.NoError(t, c.end(a))
			require.Eventually(t, func() bool { return len(mark.Processes()) == 0 }, patience,
				10*time.Millisecond)
			requireSoon(t, began)
		})
	}
}
