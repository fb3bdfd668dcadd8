package bench

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`

// BenchmarkColdStart measures from exec to the answer to the first line.
func BenchmarkColdStart(b *testing.B) {
	commands := [][]string{
		{build(b, "cmd/acp-agent"), "--state-dir", filepath.Join(b.TempDir(), "state")},
		{build(b, "internal/test/bench/echo")},
	}
	times := make([][]time.Duration, len(commands))
	for b.Loop() {
		for i, command := range commands {
			times[i] = append(times[i], firstAnswer(b, command))
		}
	}
	report(b, "ms-agent", times[0], 0.5)
	report(b, "ms-echo", times[1], 0.5)
	b.ReportMetric(float64(quantile(times[0], 0.5))/float64(quantile(times[1], 0.5)), "ratio")
}

func firstAnswer(b *testing.B, command []string) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	p, err := program.Start(program.Options{Command: command, Stderr: os.Stderr})
	check(b, err)
	check(b, p.Send(initialize))
	_, _, err = p.Await(ctx, 0, func(rawrpc.Message) bool { return true })
	check(b, err)
	took := time.Since(began)
	_ = p.CloseInput()
	_, err = p.Wait(ctx)
	check(b, err)
	return took
}

// BenchmarkBinary reports the size of the stripped program.
func BenchmarkBinary(b *testing.B) {
	info, err := os.Stat(build(b, "cmd/acp-agent"))
	check(b, err)
	for b.Loop() {
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
}
