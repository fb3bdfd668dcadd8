// Package logtest collects output for tests that read it while it is being written:
//
//	var log logtest.Text
//	cmd.Stderr = &log
//	…
//	require.Contains(t, log.String(), "signed out")
//
// It must only be imported by tests.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/volume"
)

// Text collects what is written to it. The zero value is empty and ready for use. It is safe for
// concurrent use.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the text. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String returns the text so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Count returns how often words occur in the text so far.
func (t *Text) Count(words string) int { return strings.Count(t.String(), words) }

// WaitFor waits until the text contains words.
func (t *Text) WaitFor(tb testing.TB, words string) {
	tb.Helper()
	require.Eventually(tb, func() bool { return strings.Contains(t.String(), words) },
		volume.Patience, 5*time.Millisecond, "%q is not in\n%s", words, t)
}

// Logger returns a logger that writes records of at least the level from to the text.
func (t *Text) Logger(from slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{Level: from}))
}
