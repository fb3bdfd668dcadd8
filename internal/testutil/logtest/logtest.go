// Package logtest gathers what is logged and printed, for tests that look at it while it is being written:
//
//	var log logtest.Text
//	cmd.Stderr = &log
//	…
//	require.Contains(t, log.String(), "signed out")
//
// Only tests import it.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
)

// Text is all that was written to it. Its zero value is empty and ready for use, by several goroutines at a time.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the text. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String is the text so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Count is how often words occur in the text so far.
func (t *Text) Count(words string) int { return strings.Count(t.String(), words) }

// Logger logs to the text, from a level upwards.
func (t *Text) Logger(from slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(t, &slog.HandlerOptions{Level: from}))
}
