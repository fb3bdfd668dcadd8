package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
	"github.com/acp-agent/acp-agent/workspace"
)

// BenchmarkStores compares stores that have 100,000 sessions in 100 directories.
func BenchmarkStores(b *testing.B) {
	const sessions, folders = 100_000, 100
	for name, place := range map[string]func(*testing.B) func() sessionstore.Shared{
		"SQLite": func(b *testing.B) func() sessionstore.Shared {
			dir := b.TempDir()
			return func() sessionstore.Shared { return sqlite.New(sqlite.Options{Dir: dir}) }
		},
		"PostgreSQL": func(b *testing.B) func() sessionstore.Shared {
			address := server.Address(b)
			return func() sessionstore.Shared {
				s, err := postgres.New(postgres.Options{Address: address})
				require.NoError(b, err)
				return s
			}
		},
	} {
		open := place(b)
		s := open()
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		agent := sessionstore.Agent{Kind: "explore"}
		keys := func(n int) sessionstore.Keys {
			cwd, err := workspace.ParseDir(fmt.Sprint("/src/", n%folders))
			require.NoError(b, err)
			return sessionstore.Keys{Roots: workspace.RootsFrom(cwd, workspace.Dirs{}), Real: []workspace.Dir{cwd}}
		}
		add := func(n int) sessionstore.Lease {
			lease, err := s.Create(b.Context(), sessionstore.Session{ID: sessionstore.ID(fmt.Sprint(n)), Agent: agent, Keys: keys(n)})
			require.NoError(b, err)
			return lease
		}
		var next atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for n := next.Add(1); n <= sessions; n = next.Add(1) {
					add(int(n))
				}
			})
		}
		all.Wait()

		everything := sessionstore.Query{Agent: agent}
		dir := keys(1).Roots.Cwd()
		inFolder := sessionstore.Query{Agent: agent, Cwd: &sessionstore.DirFilter{Spelling: dir, Real: dir}}
		late := everything
		for n := 0; n < 1000*late.Size(); n += sessionstore.MaxPageSize {
			q := late
			q.Limit = sessionstore.MaxPageSize
			page, err := s.List(b.Context(), q)
			require.NoError(b, err)
			late.Cursor = page.Next
		}
		for what, q := range map[string]sessionstore.Query{
			"list/page 1": everything, "list/page 1,000": late, "list/page 1 of a folder": inFolder,
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				for b.Loop() {
					_, err := s.List(b.Context(), q)
					require.NoError(b, err)
				}
			})
		}
		b.Run(name+"/new", func(b *testing.B) {
			for b.Loop() {
				add(int(next.Add(1)))
			}
		})
		segment := make([]sessionstore.Update, 20)
		for i := range segment {
			segment[i] = sessionstore.StoredUpdate(fmt.Appendf(nil,
				`{"update":{"sessionUpdate":"tool_call_update","toolCallId":"%06d","content":%q}}`, i, strings.Repeat("x", 100)))
		}
		b.Run(name+"/append of 20 updates", func(b *testing.B) {
			lease := add(int(next.Add(1)))
			for b.Loop() {
				require.NoError(b, s.Append(b.Context(), lease, segment))
			}
		})
		long := func(segments int) sessionstore.Lease {
			lease := add(int(next.Add(1)))
			for range segments {
				require.NoError(b, s.Append(b.Context(), lease, segment))
			}
			return lease
		}
		b.Run(name+"/load of 10,000 updates", func(b *testing.B) {
			lease := long(500)
			for b.Loop() {
				n := 0
				for _, err := range s.History(b.Context(), lease.ID) {
					require.NoError(b, err)
					n++
				}
				require.Equal(b, 10_000, n)
			}
		})
		source := long(1250).ID
		fork := func() sessionstore.ID {
			n := int(next.Add(1))
			id := sessionstore.ID(fmt.Sprint(n))
			_, err := s.Fork(b.Context(), source, sessionstore.Session{ID: id, Agent: agent, Keys: keys(n)})
			require.NoError(b, err)
			return id
		}
		b.Run(name+"/fork of 5 MB", func(b *testing.B) {
			for b.Loop() {
				fork()
			}
		})
		b.Run(name+"/delete of 5 MB", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				id := fork()
				b.StartTimer()
				require.NoError(b, s.Delete(b.Context(), id))
			}
		})
		// Another window of the same store prompts meanwhile. It should wait at most 10 ms.
		b.Run(name+"/prompt while 5 MB are deleted", func(b *testing.B) {
			window := open()
			defer window.Close()
			lease := add(int(next.Add(1)))
			prompt := sessionstore.Turn{Prompt: segment[:1]}
			var took []time.Duration
			for b.Loop() {
				id := fork()
				deleted := make(chan error, 1)
				go func() { deleted <- s.Delete(b.Context(), id) }()
				for begun := time.Now(); time.Since(begun) < erased; time.Sleep(time.Millisecond) {
					start := time.Now()
					number, err := window.BeginTurn(b.Context(), lease, prompt)
					took = append(took, time.Since(start))
					require.NoError(b, err)
					require.NoError(b, window.EndTurn(b.Context(), lease, number))
				}
				require.NoError(b, <-deleted)
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // it lasts as long as the erasing may take
			for what, at := range map[string]int{"p50": len(took) / 2, "p99": len(took) * 99 / 100, "max": len(took) - 1} {
				b.ReportMetric(float64(took[at].Microseconds())/1000, what+"-ms")
			}
		})
	}
}

// erased is the time after which what a deleted session left is erased, too.
const erased = 2500 * time.Millisecond
