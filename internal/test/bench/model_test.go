package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/interop/modelserver"
)

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
