package process_test

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

// Clause W9.
func TestChildIsKilledWithItsParent(t *testing.T) {
	h := proctest.Watch(t)
	us := start(t, self("supervise", h.Env()), process.Options{})
	theirs := h.Next()
	require.NoError(t, syscall.Kill(us.PID(), syscall.SIGKILL))
	theirs.Ended()
}

// The kernel counts the thread, not the process, as the child's parent.
//
// Clause W9.
func TestChildOutlivesTheStartingThread(t *testing.T) {
	started := make(chan *process.Process)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p, err := process.Start(t.Context(), self("echo"), process.Options{Grace: patience})
		if err != nil {
			panic(err)
		}
		started <- p
	}()
	p := <-started
	for range 100 {
		runtime.Gosched()
	}
	_, err := io.WriteString(p.Stdin(), "hello")
	require.NoError(t, err)
	require.NoError(t, p.Stop(bounded(t)))
	require.NoError(t, p.Wait(t.Context()), "it was not killed")
	out, err := io.ReadAll(p.Stdout())
	require.NoError(t, err)
	require.Equal(t, "hello", string(out))
	require.NoError(t, p.Stdout().Close())
}

// What left the group may write on without end.
//
// Clause W9.
func TestEscapedProcessThatWritesDoesNotBlock(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
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
