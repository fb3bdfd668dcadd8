package bench

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/interop/program"
)

const streamed = 10_000

// wireline talks to a process with as little overhead as possible: it searches lines for words and
// keeps none.
type wireline struct {
	b   *testing.B
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func dial(b *testing.B, command []string) *wireline {
	b.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	check(b, err)
	out, err := cmd.StdoutPipe()
	check(b, err)
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=scripted"), os.Stderr
	check(b, cmd.Start())
	return &wireline{b, cmd, in, bufio.NewReaderSize(out, 1<<20)}
}

func (w *wireline) hangUp() {
	w.b.Helper()
	check(w.b, w.in.Close())
	_, _ = io.Copy(io.Discard, w.out)
	check(w.b, w.cmd.Wait())
}

func (w *wireline) send(line string) {
	w.b.Helper()
	_, err := io.WriteString(w.in, line+"\n")
	check(w.b, err)
}

// ask sends a request with an id and reads until its answer. each receives the lines before it.
func (w *wireline) ask(id, line string, each func(line []byte)) []byte {
	w.b.Helper()
	w.send(line)
	for {
		got, err := w.out.ReadSlice('\n')
		check(w.b, err)
		if bytes.Contains(got, []byte(`"id":`+id+`,`)) {
			return bytes.Clone(got)
		}
		if each != nil {
			each(got)
		}
	}
}

// session initializes and opens a session, and returns its id.
func (w *wireline) session(cwd string) string {
	w.b.Helper()
	w.ask("1", initialize, nil)
	answer := w.ask("2", `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":`+strconv.Quote(cwd)+`,"mcpServers":[]}}`, nil)
	_, id, _ := bytes.Cut(answer, []byte(`"sessionId":"`))
	id, _, _ = bytes.Cut(id, []byte(`"`))
	return string(id)
}

// turn runs a turn and returns the latency of each update and the duration of the turn.
func (w *wireline) turn(session, text string) (ways []time.Duration, whole time.Duration) {
	w.b.Helper()
	ways = make([]time.Duration, 0, streamed)
	began := time.Now()
	w.ask("3", `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"`+session+`","prompt":[{"type":"text","text":`+strconv.Quote(text)+`}]}}`, func(line []byte) {
		if way, ok := latency(w.b, line); ok {
			ways = append(ways, way)
		}
	})
	if len(ways) != streamed {
		w.b.Fatalf("%d updates came", len(ways))
	}
	return ways, time.Since(began)
}

// commands are the agent alone and behind acp-agent.
func commands(b *testing.B) (direct, through []string) {
	b.Helper()
	agent := build(b, "internal/test/bench/proxy_stream")
	return []string{agent}, []string{build(b, "cmd/acp-agent"), "--state-dir", filepath.Join(b.TempDir(), "state"), "--", agent}
}

// BenchmarkProxyUpdate measures how much latency acp-agent adds to an update from an agent to its
// client, at 10,000 updates per turn, with recording on.
func BenchmarkProxyUpdate(b *testing.B) {
	direct, through := commands(b)
	for _, text := range []string{"paced", "flood"} {
		b.Run(text, func(b *testing.B) {
			var ways [2][]time.Duration
			var turns [2][]time.Duration
			cwd := b.TempDir()
			for b.Loop() {
				for i, command := range [][]string{direct, through} {
					w := dial(b, command)
					each, whole := w.turn(w.session(cwd), text)
					ways[i], turns[i] = append(ways[i], each...), append(turns[i], whole)
					w.hangUp()
				}
			}
			if text == "paced" {
				added := func(q float64) float64 {
					return float64((quantile(ways[1], q) - quantile(ways[0], q)).Microseconds())
				}
				b.ReportMetric(added(0.5), "us-added-p50")
				b.ReportMetric(added(0.99), "us-added-p99")
				return
			}
			b.ReportMetric(float64((quantile(turns[1], 0.5)-quantile(turns[0], 0.5)).Microseconds())/streamed, "us-added/update")
			b.ReportMetric(float64(quantile(turns[1], 0.5).Microseconds())/streamed, "us/update")
		})
	}
}

// BenchmarkWebSocketUpdate measures how much latency serve and connect add to an update from an
// agent behind acp-agent, on one machine.
func BenchmarkWebSocketUpdate(b *testing.B) {
	_, pipe := commands(b)
	b.Setenv(program.Remote, pipe[0])
	network := append([]string{build(b, "internal/test/interop/remote")}, pipe[1:]...)
	var ways [2][]time.Duration
	cwd := b.TempDir()
	for b.Loop() {
		for i, command := range [][]string{pipe, network} {
			w := dial(b, command)
			each, _ := w.turn(w.session(cwd), "paced")
			ways[i] = append(ways[i], each...)
			w.hangUp()
		}
	}
	b.ReportMetric(float64(quantile(ways[0], 0.5).Microseconds()), "us-pipe-p50")
	b.ReportMetric(float64(quantile(ways[1], 0.5).Microseconds()), "us-network-p50")
}
