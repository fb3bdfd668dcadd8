package bench

import (
	"testing"
	"time"
)

// measure reports the median and the 99th percentile of the duration of f.
func measure(b *testing.B, body func() time.Duration) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		times = append(times, body())
	}
	report(b, "ms-p50", times, 0.5)
	report(b, "ms-p99", times, 0.99)
}

// timed returns the duration of f.
func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// BenchmarkNewSession measures session/new with two additional directories, which is durable when
// it is answered.
func BenchmarkNewSession(b *testing.B) {
	a, cwd, lib, skills := start(b), b.TempDir(), b.TempDir(), b.TempDir()
	var open string
	measure(b, func() time.Duration {
		if open != "" {
			a.call("session/close", map[string]any{"sessionId": open}, new(struct{}))
		}
		return timed(func() { open = a.open(cwd, lib, skills) })
	})
}

// BenchmarkList measures the first page of session/list by roots, among a thousand sessions.
func BenchmarkList(b *testing.B) {
	a, cwd := start(b), b.TempDir()
	roots := []string{b.TempDir(), b.TempDir()}
	for i := range 1000 {
		additional := roots
		if i%2 == 1 {
			additional = roots[:1]
		}
		a.call("session/close", map[string]any{"sessionId": a.open(cwd, additional...)}, new(struct{}))
	}
	filter := map[string]any{"cwd": cwd, "additionalDirectories": roots}
	measure(b, func() time.Duration {
		var result struct{ Sessions []struct{ SessionID string } }
		took := timed(func() { a.call("session/list", filter, &result) })
		if len(result.Sessions) == 0 {
			b.Fatal("nothing was found")
		}
		return took
	})
}
