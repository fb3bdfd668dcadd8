package mcpservers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/child"
	"github.com/acp-agent/acp-agent/acp/mcpservers"
	"github.com/acp-agent/acp-agent/workspace"
)

// marker is in the environment of processes that a test looks for.
const marker = "ACP_MCPSERVERS_TEST_MARKER"

// marked are the processes with a marker, other than zombies.
func marked(mark string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environ, []byte(marker+"="+mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func withMark(c mcpservers.Config, mark string) mcpservers.Config {
	c.Env = append(c.Env, mcpservers.Pair{Name: marker, Value: mark})
	return c
}

func TestW9_NpxAndShellWrappersLeaveNobody(t *testing.T) {
	prefix, err := filepath.Abs(nodeDir)
	require.NoError(t, err)
	direct := node(t, "shell", filesystem)
	shell := withMark(direct, "shell")
	shell.Command, shell.Args = "sh", []string{"-c", `node "$0"; true`, direct.Args[0]}
	npx := withMark(direct, "npx")
	npx.Name, npx.Command, npx.Args = "npx", "npx", []string{"--prefix", prefix, "--offline", "mcp-server-filesystem"}
	f := with(t, mcpservers.Options{})
	f.change(open(t, folder(t)), shell, npx)
	for _, name := range []string{"shell", "npx"} {
		f.call(name+".list_allowed_directories", "{}")
		require.GreaterOrEqual(t, len(marked(name)), 2, "a wrapper and its server")
	}
	require.NoError(t, f.Close(t.Context()))
	require.Empty(t, marked("shell"))
	require.Empty(t, marked("npx"))
}

// playOwner is a process that has servers and is not told of its end.
func playOwner() int {
	const mark = "own"
	script, err := filepath.Abs(filepath.Join(nodeDir, filesystem))
	if err != nil {
		return 1
	}
	npm := mcpservers.Config{Name: "npm", Transport: mcpservers.Stdio, Command: "node", Args: []string{script}}
	shell := npm
	shell.Name, shell.Command, shell.Args = "shell", "sh", []string{"-c", `node "$0"; true`, script}
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		return 1
	}
	defer os.RemoveAll(dir)
	roots, err := workspace.NewRoots(dir, nil)
	if err != nil {
		return 1
	}
	w, err := workspace.Open(context.Background(), roots, workspace.Options{})
	if err != nil {
		return 1
	}
	set := mcpservers.NewSet(mcpservers.NewStarter(mcpservers.StarterOptions{}), mcpservers.Options{})
	change, err := set.Prepare(w, []mcpservers.Config{withMark(self("ours", "sdk"), mark), withMark(npm, mark), withMark(shell, mark)})
	if err != nil {
		return 1
	}
	change.Commit(newHost())
	if _, err := set.List(context.Background()); err != nil {
		return 1
	}
	fmt.Println(len(marked(mark)))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestW9_SIGKILLLeavesNoServerBehind(t *testing.T) {
	node(t, "", filesystem)
	exe, err := os.Executable()
	require.NoError(t, err)
	p, err := child.Start(t.Context(), child.Command{Path: exe, Env: []string{role + "=own"}}, child.Options{})
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
	require.Eventually(t, func() bool { return len(marked("own")) == 0 }, patience, 10*time.Millisecond, "left behind: %v", marked("own"))
}
