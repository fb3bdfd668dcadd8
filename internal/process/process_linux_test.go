package process_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox"
	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/needs"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Clause W9.
func TestChildIsKilledWithItsParent(t *testing.T) {
	for _, env := range [][]string{nil, {childSandbox + "=/tmp"}} {
		h := proctest.Watch(t)
		us := start(t, self("supervise", append(env, h.Env())...), process.Options{})
		theirs := h.Next()
		awaitStarted(t, us.Stdout())
		require.NoError(t, syscall.Kill(us.PID(), syscall.SIGKILL))
		theirs.Ended()
	}
}

// awaitStarted waits until a process that plays "supervise", whose output r is, has started its
// child, with the lifeline that ends it.
func awaitStarted(t *testing.T, r io.Reader) {
	t.Helper()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)
}

// Every way to start a child applies its sandbox.
//
// Clause X1.
func TestSandbox(t *testing.T) {
	in := dirtest.New(t)
	out := filepath.Join(t.TempDir(), "f")
	c := process.Command{Path: "/bin/sh", Args: []string{"-c", `echo text >f; echo text >"$1"; wc -c <f`,
		"sh", out}, Dir: in, Sandbox: sandbox.Policy{Mode: sandbox.Write, Write: []string{in}}}
	text, err := process.Output(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "5\n", string(text))
	require.NoFileExists(t, out)

	var terminal strings.Builder
	require.NoError(t, process.RunInTerminal(t.Context(), c, nil, &terminal, io.Discard))
	require.Equal(t, "5\n", terminal.String())
	require.NoFileExists(t, out)

	// It neither starts nor hangs if it cannot be restricted.
	c.Sandbox.Write = []string{out}
	var refused *process.StartError
	_, err = process.Output(t.Context(), c)
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "cannot create the sandbox: "+out)
}

// What left the group may write on without end.
//
// Clause W9.
func TestEscapedProcessThatWritesDoesNotBlock(t *testing.T) {
	needs.Programs(t, "setsid")
	for what, pause := range map[string]string{"floods": "", "drips": "sleep 0.02;"} {
		for _, stream := range []string{"1", "2"} {
			script := fmt.Sprintf(
				`setsid sh -c 'trap "" TERM; while :; do echo more >&%s || exit; %s done' & cat`,
				stream, pause)
			for name, closed := range map[string]func(*process.Process){
				"closed": func(p *process.Process) { _ = p.Stdout().Close() },
				"unread": func(*process.Process) {},
			} {
				t.Run(what+"/"+stream+"/"+name, func(t *testing.T) {
					p, err := process.Start(t.Context(),
						process.Command{Path: "sh", Args: []string{"-c", script}, Name: "escape"},
						process.Options{})
					require.NoError(t, err)
					closed(p)
					ctx, cancel := context.WithTimeout(t.Context(), patience/2)
					defer cancel()
					require.NoError(t, p.Stop(ctx))
					require.NoError(t, ctx.Err(), "Stop gave up")
					<-p.Done()
					_ = p.Stdout().Close()
				})
			}
		}
	}
}

func TestBatch(t *testing.T) {
	script := `cat; echo one; echo two >&2; cut -d' ' -f6 /proc/$$/stat; echo $$`
	for _, mode := range []sandbox.Mode{sandbox.Off, sandbox.Write} {
		p := start(t, process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Batch: true,
			Sandbox: sandbox.Policy{Mode: mode}}, process.Options{})
		out, err := io.ReadAll(p.Stdout())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("one\ntwo\n%[1]d\n%[1]d\n", p.PID()), string(out),
			"it leads a session")
		require.NoError(t, p.Wait(t.Context()))
	}
	p := start(t, process.Command{Path: "/bin/sh", Args: []string{"-c", "echo; exec sleep 1000"},
		Batch: true}, process.Options{Grace: 2 * patience})
	_, err := p.Stdout().Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, p.Stop(bounded(t)), "it is not waited for")
}
