package proctest_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, play) }

func play(role string) int {
	switch role {
	case "hold":
		return proctest.HoldOn()
	case "hold and end":
		if err := proctest.Hold(); err != nil {
			return 1
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	default:
		return 2
	}
}

// mock is a test whose failure does not fail the real test.
type mock struct {
	testing.TB
	said string
}

func (m *mock) Errorf(format string, args ...any) { m.said += fmt.Sprintf(format, args...) }
func (m *mock) FailNow()                          { runtime.Goexit() }

// fails runs f, which must fail the mock.
func (m *mock) fails(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	require.NotEmpty(m.TB, m.said)
}

// start starts this binary in a role until the test ends.
func start(t *testing.T, role string, env ...string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env(role, env...)...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd, in
}

func TestHoldersNone(t *testing.T) {
	m := &mock{TB: t}
	h := proctest.Watch(m)
	cmd := exec.CommandContext(t.Context(), proctest.Executable())
	cmd.Env = append(os.Environ(), proctest.Env("hold and end", h.Env())...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("held\n")))
	require.NoError(t, err)
	m.fails(h.None)
	require.Contains(t, m.said, "a process has called Hold")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}
