//go:build unix

package terminal

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Ctrl-C and Escape stop what takes long. Other keys do not, and are not lost.
func TestUntilStopped(t *testing.T) {
	keys, typed, err := os.Pipe()
	require.NoError(t, err)
	defer keys.Close()
	defer typed.Close()
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer nowhere.Close()
	p := &picker{keys: keyboard{screen: &Screen{in: keys, out: nowhere}}}
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, key := range []string{"\x03", "x\x03", keyEscape} {
		_, err := typed.WriteString(key)
		require.NoError(t, err)
		require.ErrorIs(t, p.untilStopped(t.Context(), wait), errStopped)
		require.Empty(t, p.keys.typed)
	}
	failed := errors.New("it failed")
	require.False(t, p.try(t.Context(), "waiting", func(ctx context.Context) error {
		_, err := typed.WriteString("x" + keyUp)
		require.NoError(t, err)
		ready := []unix.PollFd{{Fd: int32(keys.Fd()), Events: unix.POLLIN}}
		for n := 1; n > 0; { // until it was read
			n, err = unix.Poll(ready, 0)
			require.NoError(t, err)
		}
		return failed
	}))
	require.Equal(t, "it failed", p.notice)
	require.Equal(t, "x"+keyUp, p.keys.typed)
	require.True(t, p.try(t.Context(), "doing nothing", func(context.Context) error { return nil }))
	require.Empty(t, p.notice)
}
