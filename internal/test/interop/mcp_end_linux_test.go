package interop

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// withMark returns a server whose processes can be found by a mark.
func withMark(server map[string]any, mark proctest.Mark) map[string]any {
	server["env"] = []any{map[string]any{"name": proctest.MarkVariable, "value": mark}}
	return server
}

// behindShell wraps a server's command in a shell that waits for it.
func behindShell(command []string) []string {
	return []string{"sh", "-c", `"$0" "$@"; true`, command[0], command[1]}
}

// Clause W9.
func TestSIGKILLEndsMCPServers(t *testing.T) {
	t.Parallel()
	mark := proctest.NewMark(t)
	a := start(t).initialize()
	id := a.served([]string{folder(t)},
		withMark(stdioServer("direct", npmtest.Filesystem(t)), mark), withMark(stdioServer("shell", behindShell(npmtest.Everything(t))), mark))
	require.Contains(t, a.ask(id, "/mcp tools", "").text, "shell.echo")
	require.Len(t, mark.Processes(), 3, "a server, a shell, and the server behind it")
	a.kill()
	require.Eventually(t, func() bool { return len(mark.Processes()) == 0 }, patience, 10*time.Millisecond, "left behind: %v", mark.Processes())
}

// The end of input also ends servers that ignore it and servers that are in a call.
//
// Clause W9.
func TestEOFEndsMCPServers(t *testing.T) {
	t.Parallel()
	mark := proctest.NewMark(t)
	ready := filepath.Join(t.TempDir(), "ready")
	stubborn := []string{"sh", "-c", `trap "" TERM HUP INT; : >"$0"; while :; do sleep 0.1; done`, ready}
	for _, end := range []struct {
		name string
		how  func(*agent) error
	}{
		{"W9/end of input", func(a *agent) error { return a.CloseInput() }},
		{"W9/SIGTERM", func(a *agent) error { return a.Signal(syscall.SIGTERM) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			_ = os.Remove(ready)
			a := start(t).initialize()
			session := a.served([]string{folder(t)}, withMark(stdioServer("shell", behindShell(npmtest.Filesystem(t))), mark), withMark(stdioServer("stubborn", stubborn), mark))
			require.Contains(t, a.ask(session, "/call shell.list_allowed_directories", "allow_once").text, "Allowed directories")
			from, prompt := a.Count(), a.NextID()
			a.send(rawrpc.Request(prompt, "session/prompt", promptParams(session, "/mcp tools")))
			require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, patience, 5*time.Millisecond)
			require.GreaterOrEqual(t, len(mark.Processes()), 3)
			began := time.Now()
			require.NoError(t, end.how(a))
			a.ended(began, prompt, from)
			require.Empty(t, mark.Processes())
			require.NotContains(t, strings.ToLower(a.stderr.String()), "panic")
		})
	}
}
