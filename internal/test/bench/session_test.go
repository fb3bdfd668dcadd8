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
