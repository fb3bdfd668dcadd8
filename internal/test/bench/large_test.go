package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-agent/acp-agent/internal/test/interop/stock"
)

// The large store has a hundred thousand sessions: three in five have the same roots, the others
// lack the last one.
const (
	stocked = 500
	copies  = 200
)

// page is a response to session/list.
type page struct {
	Sessions   []struct{ SessionID string }
	NextCursor string
}

// list requests a page.
func (a *agent) list(filter map[string]any) (p page) {
	a.b.Helper()
	a.call("session/list", filter, &p)
	if len(p.Sessions) != 50 {
		a.b.Fatalf("a page of %d sessions", len(p.Sessions))
	}
	return p
}

// BenchmarkLargeStore measures session/list by cwd and roots and session/new with a hundred
// thousand stored sessions.
func BenchmarkLargeStore(b *testing.B) {
	state, cwd, roots := filepath.Join(b.TempDir(), "state"), b.TempDir(), []string{b.TempDir(), b.TempDir()}
	s := stock.Open(state)
	for i := range stocked {
		directories := roots
		if i%5 > 2 {
			directories = roots[:1]
		}
		check(b, s.Session(b.Context(), stock.Session{ID: fmt.Sprint("stocked-", i), Cwd: cwd, Directories: directories}))
	}
	check(b, s.Multiply(b.Context(), copies))
	check(b, s.Close())
	a := runIn(b, state, []string{build(b, "cmd/acp-agent")})
	b.Cleanup(a.leave)

	filter := map[string]any{"cwd": cwd, "additionalDirectories": roots}
	b.Run("Page1", func(b *testing.B) { a.pages(b, filter) })
	b.Run("Page1000", func(b *testing.B) {
		if filter["cursor"] == nil {
			cursor := a.list(filter).NextCursor
			for range 998 {
				cursor = a.list(map[string]any{"cwd": cwd, "additionalDirectories": roots, "cursor": cursor}).NextCursor
			}
			filter["cursor"] = cursor
		}
		a.pages(b, filter)
	})
	b.Run("New", func(b *testing.B) {
		measure(b, func() time.Duration {
			var id string
			took := timed(func() { id = a.open(cwd, roots...) })
			a.call("session/close", map[string]any{"sessionId": id}, new(struct{}))
			return took
		})
	})
}

// pages measures a page of session/list.
func (a *agent) pages(b *testing.B, filter map[string]any) {
	b.Helper()
	measure(b, func() time.Duration { return timed(func() { a.list(filter) }) })
}
