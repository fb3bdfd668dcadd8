//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// playUnix plays the children that exist on Unix.
func playUnix(r string) int {
	switch r {
	case "deferred": // as an editor starts our program
		err := process.RunDeferred()
		if exit, ok := errors.AsType[*process.ExitError](err); ok {
			return exit.Status
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "try all":
		return tryAll()
	case "open handle":
		return openHandle()
	case "supervise": // has a child of its own, says when it has started, and never ends it
		child := self("hold on")
		if script := os.Getenv(childScript); script != "" {
			child = shell(script, "hold on")
		}
		if dir := os.Getenv(childSandbox); dir != "" {
			child.Sandbox = sandbox.Policy{Mode: sandbox.Write, Write: []string{dir}}
		}
		p, err := process.Start(context.Background(), child, process.Options{})
		if err != nil {
			return 1
		}
		fmt.Println("started")
		<-p.Done()
	case "escape": // leaves somebody behind who has our stdout and is not in the group
		err := startSelf("hold", func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		})
		if err != nil {
			return 1
		}
		fmt.Print("left")
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		return 2
	}
	return 0
}

// The variables with the script of the child of "supervise", and the directory of its sandbox.
const (
	childScript  = "ACP_PROCESS_TEST_SCRIPT"
	childSandbox = "ACP_PROCESS_TEST_SANDBOX"
)

// startSelf starts this binary in a role, as a child's child.
func startSelf(r string, change func(*exec.Cmd)) error {
	cmd := exec.Command(proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env(r)...)
	cmd.Stdout = os.Stdout
	change(cmd)
	return cmd.Start()
}

// shell is a wrapper, as npx is one: it runs script, in which $0 is this binary in a role.
func shell(script, r string, env ...string) process.Command {
	c := self(r, env...)
	return process.Command{Path: "sh", Args: []string{"-c", script, c.Path}, Env: c.Env,
		Name: "wrapper"}
}

// Stop ends a child step by step, and at once if it may not wait.
//
// Clause W9.
func TestStop(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		role             string
		ctx              context.Context
		grace, termGrace time.Duration
		want             syscall.Signal
	}{
		{"hold", bounded(t), 1, patience, syscall.SIGTERM},
		{"hold on", bounded(t), 1, 1, syscall.SIGKILL},
		{"hold on", cancelled, 2 * patience, 2 * patience, syscall.SIGKILL},
	} {
		h := proctest.Watch(t)
		p := start(t, self(c.role, h.Env()), process.Options{Grace: c.grace}.WithTermGrace(c.termGrace))
		h.Next()
		require.NoError(t, p.Stop(c.ctx))
		var exit *process.ExitError
		require.ErrorAs(t, p.Wait(bounded(t)), &exit)
		require.Equal(t, -1, exit.Code)
		require.Equal(t, "signal: "+c.want.String(), exit.State)
	}
}

// Clause W9.
func TestOutputEndsDespiteEscapedProcess(t *testing.T) {
	h := proctest.Watch(t)
	p := start(t, self("escape", h.Env()), process.Options{Grace: patience})
	h.Next()
	reading := make(chan string)
	go func() {
		out, err := io.ReadAll(p.Stdout())
		reading <- fmt.Sprint(string(out), err)
	}()
	require.NoError(t, p.Stop(bounded(t)))
	require.Equal(t, "left<nil>", <-reading)
}

func TestStartError_missingInterpreter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o700))
	_, err := process.Start(t.Context(), process.Command{Path: path}, process.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "interpreter")
}

func TestStatusOfSignal(t *testing.T) {
	c := process.Command{Path: "/bin/sh", Args: []string{"-c", "kill -KILL $$"}}
	err := process.RunInTerminal(t.Context(), c, nil, nil, nil)
	var exit *process.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.Code)
	require.Equal(t, 128+9, exit.Status, "as a shell says")
}

// An environment that is empty is not ours.
//
// Clause X8.
func TestEmptyEnvironment(t *testing.T) {
	for _, base := range [][]string{nil, {}} {
		c := process.Command{Path: "/usr/bin/env", Base: base}
		p, err := process.Start(t.Context(), c, process.Options{})
		require.NoError(t, err)
		out, err := io.ReadAll(p.Stdout())
		require.NoError(t, err)
		<-p.Done()
		require.Equal(t, base == nil, strings.Contains(string(out), "PATH="), "%s", out)
	}
}
