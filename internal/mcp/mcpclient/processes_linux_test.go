package mcpclient_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/mcp/mcpclient"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/npmtest"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
	"github.com/acp-agent/acp-agent/workspace"
)

// withMark returns a server whose processes can be found by a mark.
func withMark(c mcpclient.Config, mark proctest.Mark) mcpclient.Config {
	c.Env = append(c.Env, mcpclient.Pair{Name: proctest.MarkVariable, Value: string(mark)})
	return c
}

// behindShell returns a server started by a shell that waits for it.
func behindShell(c mcpclient.Config) mcpclient.Config {
	c.Name, c.Command, c.Args = "shell", "sh", []string{"-c", `"$0" "$1"; true`, c.Command, c.Args[0]}
	return c
}

// Clause W9.
func TestNpxAndShellWrappers(t *testing.T) {
	direct := npmServer("npm", npmtest.Filesystem(t))
	packages := filepath.Dir(npmtest.File(t, "testdata/node-mcp", ""))
	npx := direct
	npx.Name, npx.Command, npx.Args = "npx", "npx", []string{"--prefix", packages, "--offline", "mcp-server-filesystem"}
	shell, ofNpx := proctest.NewMark(t)+"-shell", proctest.NewMark(t)+"-npx"
	f := serving(t, mcpclient.Options{}, withMark(behindShell(direct), shell), withMark(npx, ofNpx))
	for name, mark := range map[string]proctest.Mark{"shell": shell, "npx": ofNpx} {
		f.call(name+".list_allowed_directories", "{}")
		require.GreaterOrEqual(t, len(mark.Processes()), 2, "a wrapper and its server")
	}
	require.NoError(t, f.Close(t.Context()))
	require.Empty(t, shell.Processes())
	require.Empty(t, ofNpx.Processes())
}

// runOwner runs a process that has servers and is killed. Its arguments are a working directory and
// the command of a server from npm.
func runOwner() int {
	mark, npm := proctest.Mark(os.Getenv(ownMark)), npmServer("npm", os.Args[2:])
	roots, err := workspace.NewRoots(os.Args[1], nil)
	if err != nil {
		return 1
	}
	w, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		return 1
	}
	set := mcpclient.NewSet(make(chan struct{}, 8), mcpclient.Options{})
	change, err := set.Prepare(w, []mcpclient.Config{withMark(self("ours", "sdk"), mark), withMark(npm, mark), withMark(behindShell(npm), mark)})
	if err != nil {
		return 1
	}
	change.Commit(newHost())
	listings, err := set.List(context.Background())
	if err != nil {
		return 1
	}
	for range listings { // until all are started
	}
	fmt.Println(len(mark.Processes()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// ownMark is the variable with the mark for the servers of an owner.
const ownMark = "ACP_MCPSERVERS_TEST_OWN"

// Clause W9.
func TestSIGKILL(t *testing.T) {
	mark := proctest.NewMark(t)
	p, err := process.Start(t.Context(), process.Command{
		Path: proctest.Executable(), Args: append([]string{folder(t)}, npmtest.Filesystem(t)...),
		Env: proctest.Env("own", ownMark+"="+string(mark)),
	}, process.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.Stop(context.Background())
		_ = p.Stdout().Close()
	})
	buffer := make([]byte, 16)
	n, err := p.Stdout().Read(buffer)
	require.NoError(t, err)
	require.Equal(t, "4\n", string(buffer[:n]), "a server of ours, one of npm, and one behind a shell")
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	require.Eventually(t, func() bool { return len(mark.Processes()) == 0 }, patience, 10*time.Millisecond, "left behind: %v", mark.Processes())
}
