package bench

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
)

// long is the length of the histories.
const long = 100_000

// history starts the program with a stored session that has a long history.
func history(b *testing.B, s stock.Session) *wireline {
	b.Helper()
	state := filepath.Join(b.TempDir(), "state")
	store := stock.Open(state)
	check(b, store.Session(b.Context(), s))
	check(b, store.Close())
	return read(b, build(b, "cmd/acp-agent"), "--state-dir", state)
}

// BenchmarkLoad measures session/load of a long history, and copying the same bytes through a pipe.
// The history consists of messages, or of chunks of one message, which were merged when they were
// recorded. The rate limit for replays is off.
func BenchmarkLoad(b *testing.B) {
	b.Run("Messages", func(b *testing.B) { loads(b, stock.Session{ID: "long", Cwd: b.TempDir(), Messages: long}) })
	b.Run("Chunks", func(b *testing.B) { loads(b, stock.Session{ID: "long", Cwd: b.TempDir(), Chunks: long}) })
}

func loads(b *testing.B, s stock.Session) {
	b.Setenv("ACP_AGENT_REPLAY_RATE", "-1")
	r := history(b, s)
	load := rawrpc.Request(5, "session/load", map[string]any{"sessionId": s.ID, "cwd": s.Cwd, "mcpServers": []any{}})
	var replay bytes.Buffer
	r.send(load)
	for line := []byte(nil); !bytes.Contains(line, []byte(`"id":5`)); replay.Write(line) {
		_, line = r.until("\n")
	}
	var loaded, copied []time.Duration
	updates := 0
	for b.Loop() {
		loaded = append(loaded, timed(func() {
			r.send(load)
			updates, _ = r.until(`"id":5`)
		}))
		copied = append(copied, timed(func() { pipe(b, replay.Bytes()) }))
	}
	report(b, "ms-load", loaded, 0.5)
	report(b, "ms-pipe", copied, 0.5)
	b.ReportMetric(float64(quantile(loaded, 0.5))/float64(quantile(copied, 0.5)), "ratio")
	b.ReportMetric(float64(updates), "updates")
	b.ReportMetric(float64(replay.Len())/(1<<20), "MiB")
}

// pipe copies what was read from a program through a pipe to the same reader.
func pipe(b *testing.B, text []byte) {
	b.Helper()
	out, in, err := os.Pipe()
	check(b, err)
	sent := make(chan error, 1)
	go func() {
		_, err := in.Write(text)
		_ = in.Close()
		sent <- err
	}()
	r := &wireline{b: b, out: bufio.NewReaderSize(out, 1<<20)}
	r.until(`"id":5`)
	_, err = io.Copy(io.Discard, r.out)
	check(b, err)
	check(b, <-sent)
	check(b, out.Close())
}

// BenchmarkFork measures session/fork of a long history.
func BenchmarkFork(b *testing.B) {
	s := stock.Session{ID: "long", Cwd: b.TempDir(), Messages: long}
	r := history(b, s)
	fork := rawrpc.Request(5, "session/fork", map[string]any{"sessionId": s.ID, "cwd": s.Cwd, "mcpServers": []any{}})
	measure(b, func() time.Duration {
		var line []byte
		took := timed(func() {
			r.send(fork)
			_, line = r.until(`"id":5`)
		})
		r.send(rawrpc.Request(6, "session/close", map[string]any{"sessionId": sessionID(b, line)}))
		r.until(`"id":6`)
		return took
	})
}
