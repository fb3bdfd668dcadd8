package bench

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/conform/rawrpc"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
)

// BenchmarkNeighbour measures what another user notices while ten connections of one user send what
// costs a server most, as fast as they are read. It reports the median and the longest time of a
// list, a load and a turn, without and with each kind of request.
func BenchmarkNeighbour(b *testing.B) {
	program := build(b, "cmd/acp-agent")
	var database pgtest.Server
	b.Cleanup(database.Stop)
	for name, address := range map[string]func() string{
		"SQLite": func() string { return "" }, "PostgreSQL": func() string { return database.Address(b) },
	} {
		b.Run(name, func(b *testing.B) {
			n := newNeighbourhood(b, program, address())
			defer n.server.end(b)
			b.Run("quiet", n.measure)
			for what, line := range n.floods() {
				b.Run(what, func(b *testing.B) {
					stop := n.flood(b, line)
					n.measure(b)
					b.ReportMetric(float64(stop()), "requests")
				})
			}
		})
	}
}

// neighbourhood is a server with a user who floods it, and another one.
type neighbourhood struct {
	server *server
	eve    string // a token
	long   string // a session of eve with a long history
	ana    *remote
	cwd    string
	own    string // a session of ana
}

func newNeighbourhood(b *testing.B, program, database string) *neighbourhood {
	b.Helper()
	n := &neighbourhood{server: serve(b, program, database), cwd: b.TempDir()}
	n.eve = n.server.token(b, "eve", n.cwd)
	eve, err := n.server.dial(b, n.eve)
	check(b, err)
	for range 200 {
		id, err := eve.open(b, n.cwd)
		check(b, err)
		_, err = eve.call(b, "session/close", map[string]any{"sessionId": id})
		check(b, err)
	}
	n.long, err = eve.open(b, n.cwd)
	check(b, err)
	for range 20 {
		check(b, eve.say(b, n.long, strings.Repeat("many words ", 5000)))
	}
	check(b, eve.conn.Close())
	n.ana, err = n.server.dial(b, n.server.token(b, "ana", n.cwd))
	check(b, err)
	n.own, err = n.ana.open(b, n.cwd)
	check(b, err)
	return n
}

// floods returns requests of eve by what they are. The function gets the number of a request.
func (n *neighbourhood) floods() map[string]func(id int) string {
	return map[string]func(id int) string{
		"lists": func(id int) string { return rawrpc.Request(id, "session/list", map[string]any{}) },
		"loads": func(id int) string {
			return rawrpc.Request(id, "session/load",
				map[string]any{"sessionId": n.long, "cwd": n.cwd, "mcpServers": []any{}})
		},
		"new sessions": func(id int) string {
			return rawrpc.Request(id, "session/new", map[string]any{"cwd": n.cwd, "mcpServers": []any{}})
		},
		"large prompts": func(id int) string {
			return rawrpc.Request(id, "session/prompt", prompt(n.long, strings.Repeat("word ", 200_000)))
		},
		"rules": func(id int) string {
			return rawrpc.Request(id, "session/prompt",
				prompt(n.long, "/permissions allow run "+strings.Repeat("((a|b)*c)*", 1000)))
		},
		"forks": func(id int) string {
			return rawrpc.Request(id, "session/fork",
				map[string]any{"sessionId": n.long, "cwd": n.cwd, "mcpServers": []any{}})
		},
		"unknown methods": func(id int) string { return rawrpc.Request(id, fmt.Sprint("x/", id), map[string]any{}) },
	}
}

// flood sends a request again and again over ten connections, with up to 32 unanswered on each, until
// stop is called, which returns how many were answered.
func (n *neighbourhood) flood(b *testing.B, line func(id int) string) (stop func() int64) {
	b.Helper()
	const connections, unanswered = 10, 32
	var answered atomic.Int64
	var all sync.WaitGroup
	var conns []*remote
	for range connections {
		eve, err := n.server.dial(b, n.eve)
		check(b, err)
		conns = append(conns, eve)
		room := make(chan struct{}, unanswered)
		ended := make(chan struct{})
		all.Go(func() {
			for id := 10; ; id++ {
				select {
				case room <- struct{}{}:
				case <-ended:
					return
				}
				if eve.conn.Write(b.Context(), []byte(line(id))) != nil {
					return
				}
			}
		})
		all.Go(func() {
			defer close(ended)
			for {
				m, err := eve.read()
				if err != nil {
					return
				}
				if m.Method == "" {
					answered.Add(1)
					<-room
				}
			}
		})
	}
	return func() int64 {
		count := answered.Load()
		for _, c := range conns {
			_ = c.conn.Close()
		}
		all.Wait()
		return count
	}
}

// measure reports what ana waits for.
func (n *neighbourhood) measure(b *testing.B) {
	took := make(map[string][]time.Duration)
	for b.Loop() {
		for range 10 { // few enough that ana is not slowed down herself
			for what, do := range map[string]func() error{
				"list": func() error {
					_, err := n.ana.call(b, "session/list", map[string]any{})
					return err
				},
				"load": func() error {
					_, err := n.ana.call(b, "session/load",
						map[string]any{"sessionId": n.own, "cwd": n.cwd, "mcpServers": []any{}})
					return err
				},
				"turn": func() error { return n.ana.say(b, n.own, "/roots") },
			} {
				var err error
				took[what] = append(took[what], timed(func() { err = do() }))
				check(b, err)
			}
		}
	}
	for what, durations := range took {
		report(b, what+"-ms", durations, 0.5)
		report(b, what+"-max-ms", []time.Duration{slices.Max(durations)}, 0)
	}
}
