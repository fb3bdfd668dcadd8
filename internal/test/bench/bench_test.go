package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
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

// BenchmarkMCP measures tools of the MCP server in a folder of 20,000 files: the end of a file of
// 1.9 MB, and a search for a word that one file has.
func BenchmarkMCP(b *testing.B) {
	dir := b.TempDir()
	long := filepath.Join(dir, "long.txt")
	check(b, os.WriteFile(long, []byte(strings.Repeat("a line of some length\n", 86_000)), 0o600))
	for i := range 20_000 {
		path := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i, ".txt"))
		check(b, os.MkdirAll(filepath.Dir(path), 0o700))
		check(b, os.WriteFile(path, fmt.Appendln(nil, strings.Repeat("text ", 200), "needle", i), 0o600))
	}
	p, err := program.Start(program.Options{Command: []string{build(b, "cmd/acp-agent"), "mcp", "--dir", dir}, Stderr: os.Stderr})
	check(b, err)
	server := &agent{Process: p, b: b}
	b.Cleanup(server.leave)
	server.call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "bench", "version": "1"},
	}, new(struct{}))
	for name, params := range map[string]map[string]any{
		"Tail":   {"name": "read_file", "arguments": map[string]any{"path": long, "tail": 20}},
		"Search": {"name": "search", "arguments": map[string]any{"pattern": "needle 12345$", "path": dir}},
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, func() time.Duration {
				var result struct{ IsError bool }
				took := timed(func() { server.call("tools/call", params, &result) })
				if result.IsError {
					b.Fatal("the call failed")
				}
				return took
			})
		})
	}
}

// BenchmarkModelUpdate measures how long it takes from a delta of a model's answer to the update
// that the client receives, at a delta every 200 microseconds, and how long it takes a client of
// the model that does nothing else.
func BenchmarkModelUpdate(b *testing.B) {
	model, err := modelserver.Start()
	check(b, err)
	b.Cleanup(func() { check(b, model.Close()) })
	dir := b.TempDir()
	config := filepath.Join(dir, "config.json")
	check(b, os.WriteFile(config, fmt.Appendf(nil, `{"models": {"local": {"baseURL": %q}}}`, model.URL()+"/v1"), 0o600))
	command := []string{build(b, "cmd/acp-agent"), "--config", config, "--state-dir", filepath.Join(dir, "state"), "--model", "local"}
	prompt := modelserver.Prompt("Please.", modelserver.Stamps(streamed, 200*time.Microsecond))
	var direct, through []time.Duration
	for b.Loop() {
		direct = append(direct, deltas(b, model, prompt)...)
		w := dial(b, command)
		each, _ := w.turn(w.session(dir), prompt)
		through = append(through, each...)
		w.hangUp()
	}
	us := func(ways []time.Duration, q float64) float64 { return float64(quantile(ways, q).Nanoseconds()) / 1000 }
	b.ReportMetric(us(through, 0.5), "us-p50")
	b.ReportMetric(us(through, 0.99), "us-p99")
	b.ReportMetric(us(direct, 0.5), "us-direct-p50")
}

// deltas asks a model and returns the latency of each delta.
func deltas(b *testing.B, model *modelserver.Server, prompt string) (ways []time.Duration) {
	b.Helper()
	body := fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":%q}],"tools":[{"type":"function","function":{"name":"read_file"}}]}`, prompt)
	answer, err := http.Post(model.URL()+"/v1/chat/completions", "application/json", strings.NewReader(body))
	check(b, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if way, ok := latency(b, lines.Bytes()); ok {
			ways = append(ways, way)
		}
	}
	check(b, lines.Err())
	return ways
}

// latency returns the time since the one with which a text in a line begins.
func latency(b *testing.B, line []byte) (way time.Duration, ok bool) {
	now := time.Now().UnixNano()
	_, stamp, found := bytes.Cut(line, []byte(`"at `))
	end := bytes.IndexByte(stamp, ' ')
	if !found || end <= 0 {
		return 0, false
	}
	sent, err := strconv.ParseInt(string(stamp[:end]), 10, 64)
	check(b, err)
	return time.Duration(now - sent), true
}
