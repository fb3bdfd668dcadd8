//go:build unix

package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ctrl-C and Escape stop what takes long, and other keys do not.
func TestUntilStopped(t *testing.T) {
	keys, typed, err := os.Pipe()
	require.NoError(t, err)
	defer keys.Close()
	defer typed.Close()
	p := &picker{screen: &screen{in: keys}}
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, key := range []string{"\x03", "x\x03", keyEscape} {
		_, err := typed.WriteString(key)
		require.NoError(t, err)
		require.ErrorIs(t, p.untilStopped(t.Context(), wait), errStopped)
	}
	require.NoError(t, p.untilStopped(t.Context(), func(context.Context) error {
		_, err := typed.WriteString("x" + keyUp)
		return err
	}))
}
