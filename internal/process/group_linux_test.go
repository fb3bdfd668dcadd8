package process_test

import (
	"io"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

func TestW9_DirectChildIsKilledWhenWeAre(t *testing.T) {
	h := proctest.Watch(t)
	us := start(t, self("supervise", h.Env()), process.Options{})
	theirs := h.Next()
	require.NoError(t, syscall.Kill(us.PID(), syscall.SIGKILL))
	theirs.Ended()
}

// The kernel counts the thread, not the process, as the child's parent.
func TestW9_ChildOutlivesTheThreadOfItsStarter(t *testing.T) {
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
