package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/interop/pipes"
)

// reader is a client that reads as fast as possible: it searches lines for words and keeps none.
type reader struct {
	b   *testing.B
	pid int
	in  io.Writer
	out *bufio.Reader
}

// until reads up to a line with a word in it, and returns how many lines came before and that line.
func (r *reader) until(word string) (before int, line []byte) {
	r.b.Helper()
	for {
		line, err := r.out.ReadSlice('\n')
		check(r.b, err)
		if bytes.Contains(line, []byte(word)) {
			return before, line
		}
		before++
	}
}

func (r *reader) send(line string) {
	r.b.Helper()
	_, err := io.WriteString(r.in, line+"\n")
	check(r.b, err)
}

// read starts an agent that ends with the benchmark.
func read(b *testing.B, command ...string) *reader {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), role+"=scripted")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(b, err)
	out, err := cmd.StdoutPipe()
	check(b, err)
	check(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	r := &reader{b: b, pid: cmd.Process.Pid, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	r.send(initialize)
	r.until(`"result"`)
	return r
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
	r := read(b, command...)
	id := r.open()
	var late []int
	measure(b, func() time.Duration {
		r.send(pipes.Request(3, "session/prompt", map[string]any{
			"sessionId": id, "prompt": []any{map[string]string{"type": "text", "text": "stream 10000"}},
		}))
		r.until("update 1000")
		return timed(func() {
			r.send(pipes.Notification("session/cancel", map[string]any{"sessionId": id}))
			updates, line := r.until(`"stopReason"`)
			if !bytes.Contains(line, []byte("cancelled")) {
				b.Fatalf("the turn was not cancelled: %s", line)
			}
			late = append(late, updates)
		})
	})
	b.ReportMetric(float64(quantile(late, 0.5)), "updates")
}

// open makes a session and returns its id.
func (r *reader) open() string {
	r.b.Helper()
	r.send(pipes.Request(2, "session/new", map[string]any{"cwd": r.b.TempDir(), "mcpServers": []any{}}))
	_, line := r.until(`"id":2`)
	return sessionID(r.b, line)
}

// sessionID returns the session id in a response.
func sessionID(b *testing.B, line []byte) string {
	b.Helper()
	var m pipes.Message
	var made struct{ SessionID string }
	check(b, json.Unmarshal(line, &m))
	check(b, m.Decode(&made))
	return made.SessionID
}
