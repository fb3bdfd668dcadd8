package sqlite

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

// gate notes the owners of transactions, which wait until it is opened for one of them.
type gate struct {
	*file
	open  chan struct{}
	mu    sync.Mutex
	order []string
}

func (g *gate) Transact(
	ctx context.Context, owner string, a core.Access, do func(core.Tx) error,
) error {
	if owner != core.Everyone && owner != "" {
		g.mu.Lock()
		g.order = append(g.order, owner)
		g.mu.Unlock()
		<-g.open
	}
	return g.file.Transact(ctx, owner, a, do)
}

// Traits are those of a file, in which some can read while others write.
func (g *gate) Traits() core.Traits {
	t := g.file.Traits()
	t.Readers, t.Writers = readers, 1
	return t
}

// Owners take turns in which each one's calls come in their order, whether they write or read. Of
// the lists, searches and counts of an owner two run at once, and who asks whether the store can be
// used waits for nobody who reads, and for others who write until the context ends.
//
// Clause N6.
func TestOwnersTakeTurns(t *testing.T) {
	write := func(s sessionstore.Store) { _ = s.Rename(context.Background(), "none", "x") }
	list := func(s sessionstore.Store) { _, _ = s.List(context.Background(), sessionstore.Query{}) }
	count := func(s sessionstore.Store) { _, _ = s.Sums(context.Background(), sessionstore.ChargeQuery{}) }
	read := func(s sessionstore.Store) { _, _ = s.Get(context.Background(), "none") }
	for name, tc := range map[string]struct {
		calls []func(sessionstore.Store)
		who   string // the owner of each call, a or b
		begun string // of calls that run before the first one has ended
		order string
	}{
		"writes": {[]func(sessionstore.Store){write}, "aaaabb", "a", "aababa"},
		"lists":  {[]func(sessionstore.Store){list, count}, "aaaaab", "aab", "aabaaa"},
		"reads":  {[]func(sessionstore.Store){list, read, read}, "aaaaaaaab", "aaaa", "aaaaabaaa"},
	} {
		t.Run("N6/"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gate{file: NewMemory().file, open: make(chan struct{})}
				s := core.New(g, core.Options{})
				require.NoError(t, s.Ping(t.Context()))
				order := func() (all string) {
					synctest.Wait()
					g.mu.Lock()
					defer g.mu.Unlock()
					for _, owner := range g.order {
						all += owner
					}
					return all
				}
				var calls sync.WaitGroup
				for i, who := range tc.who {
					calls.Go(func() { tc.calls[i%len(tc.calls)](s.For(string(who))) })
					synctest.Wait()
				}
				require.Equal(t, tc.begun, order())
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.NoError(t, s.Ping(ctx))
				for range tc.who {
					g.open <- struct{}{}
					synctest.Wait()
				}
				require.Equal(t, tc.order, order())
				calls.Wait()
				close(g.open)
				require.NoError(t, s.Close())
			})
		})
	}
}
