package tasks_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/acp/internal/session/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPanicsAreErrors(t *testing.T) {
	g := tasks.NewGroup(slog.New(slog.DiscardHandler))
	require.ErrorIs(t, g.Guard("a test", func() error { panic("no") }), tasks.ErrPanicked)
	g.Go(func() { panic("no") })
	require.True(t, g.Wait(t.Context()), "it ends only its goroutine")
}

// What a disk answers too late is undone.
func TestLateWorkIsUndone(t *testing.T) {
	g := tasks.NewGroup(slog.New(slog.DiscardHandler))
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	answers, undone := make(chan struct{}), false
	_, err := tasks.FromDiskOrUndo(ctx, g, func() (int, error) {
		cancel(gaveUp)
		<-answers
		return 7, nil
	}, func(n int) { undone = n == 7 })
	require.ErrorIs(t, err, gaveUp)
	ended, end := context.WithCancel(t.Context())
	end()
	require.False(t, g.Wait(ended), "the disk has not answered")
	close(answers)
	require.True(t, g.Wait(t.Context()))
	require.True(t, undone)
}

func TestFromDisk(t *testing.T) {
	g := tasks.NewGroup(slog.New(slog.DiscardHandler))
	n, err := tasks.FromDisk(t.Context(), g, func() (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, n)
	broken := errors.New("broken")
	n, err = tasks.FromDisk(t.Context(), g, func() (int, error) { return 7, broken })
	require.ErrorIs(t, err, broken)
	require.Zero(t, n)
}
