package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
)

// until reads up to a line with a word in it, and returns how many lines came before and that line.
func (w *wireline) until(word string) (before int, line []byte) {
	w.b.Helper()
	for {
		line, err := w.out.ReadSlice('\n')
		check(w.b, err)
		if bytes.Contains(line, []byte(word)) {
			return before, line
		}
		before++
	}
}

// read starts an agent that ends with the benchmark.
func read(b *testing.B, command ...string) *wireline {
	b.Helper()
	w := dial(b, command)
	b.Cleanup(w.hangUp)
	w.send(initialize)
	w.until(`"result"`)
	return w
}

// BenchmarkCancel measures the time from session/cancel to the prompt's answer while ten thousand
// updates stream as fast as they can, from a backend in the process or from an agent behind the
// program, and how many still arrive in that time.
func BenchmarkCancel(b *testing.B) {
	b.Run("Runtime", func(b *testing.B) {
		cancels(b, build(b, "internal/test/bench/flood"), b.TempDir())
	})
	b.Run("Behind", func(b *testing.B) {
		cancels(b, build(b, "cmd/acp-agent"), "--state-dir", filepath.Join(b.TempDir(), "state"), "--", os.Args[0])
	})
}

func cancels(b *testing.B, command ...string) {
	b.Helper()
	w := read(b, command...)
	id := w.open()
	var late []int
	measure(b, func() time.Duration {
		w.send(rawrpc.Request(3, "session/prompt", map[string]any{
			"sessionId": id, "prompt": []any{map[string]string{"type": "text", "text": "stream 10000"}},
		}))
		w.until("update 1000")
		return timed(func() {
			w.send(rawrpc.Notification("session/cancel", map[string]any{"sessionId": id}))
			updates, line := w.until(`"stopReason"`)
			if !bytes.Contains(line, []byte("cancelled")) {
				b.Fatalf("the turn was not cancelled: %s", line)
			}
			late = append(late, updates)
		})
	})
	b.ReportMetric(float64(quantile(late, 0.5)), "updates")
}

// open makes a session and returns its id.
func (w *wireline) open() string {
	w.b.Helper()
	w.send(rawrpc.Request(2, "session/new", map[string]any{"cwd": w.b.TempDir(), "mcpServers": []any{}}))
	_, line := w.until(`"id":2`)
	return sessionID(w.b, line)
}

// sessionID returns the session id in a response.
func sessionID(b *testing.B, line []byte) string {
	b.Helper()
	var m rawrpc.Message
	var made struct{ SessionID string }
	check(b, json.Unmarshal(line, &m))
	check(b, m.Decode(&made))
	return made.SessionID
}
