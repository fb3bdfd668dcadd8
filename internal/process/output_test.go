package process_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

func TestStderrIsLoggedByLine(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "pid" {
				return slog.Attr{}
			}
			return a
		}}))
	p := start(t, self("complain"), process.Options{Logger: logger, MaxLogLine: 20})
	require.Error(t, p.Wait(bounded(t)))
	require.Equal(t, ``+
		"level=INFO msg=first child=complain\n"+
		"level=INFO msg=\"  second\" child=complain\n"+
		"level=INFO msg=\"bad \uFFFD\" child=complain\n"+
		"level=INFO msg=longlonglonglonglong… child=complain\n"+
		"level=INFO msg=last child=complain\n", log.String())
}

func TestSecretsInStderr(t *testing.T) {
	var log strings.Builder
	secrets := &secret.Scrubber{}
	for _, s := range []string{"second", strings.Repeat("long", 10), "\"quoted\" \\ secret"} {
		secrets.Add(s)
	}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	err := start(t, self("complain"), process.Options{Logger: logger, Secrets: secrets,
		MaxLogLine: 26}).Wait(bounded(t))
	require.ErrorContains(t, err, `: last`)
	require.Equal(t, 1, strings.Count(log.String(), "msg=\"  [secret]\" "), log.String())
	require.Contains(t, log.String(), "msg=[secret]… ", "a secret that is cut off")

	err = start(t, self("reveal"), process.Options{Logger: logger, Secrets: secrets}).Wait(
		bounded(t))
	require.ErrorContains(t, err, `: it is [secret]`)
	require.NotContains(t, log.String(), "quoted")
}

// stuckHandler blocks the first record until it is released, and counts.
type stuckHandler struct {
	slog.Handler
	release chan struct{}
	mu      sync.Mutex
	lines   int
	dropped int64
}

func (h *stuckHandler) Handle(_ context.Context, r slog.Record) error {
	<-h.release
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines++
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "lines" {
			h.lines--
			h.dropped += a.Value.Int64()
		}
		return true
	})
	return nil
}

func (h *stuckHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *stuckHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }

func TestBlockedLoggerDoesNotBlockTheChild(t *testing.T) {
	h := &stuckHandler{release: make(chan struct{})}
	p := start(t, self("flood"), process.Options{Logger: slog.New(h), Grace: patience})
	said := make([]byte, 4)
	_, err := io.ReadFull(p.Stdout(), said)
	require.NoError(t, err)
	require.Equal(t, "done", string(said), "it wrote all of its stderr")
	close(h.release)
	require.NoError(t, p.Stop(bounded(t)))
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Positive(t, h.dropped)
	require.LessOrEqual(t, int64(h.lines)+h.dropped, int64(20_000))
}
