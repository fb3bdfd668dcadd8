package acp_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/test/pgtest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// Two clients take a session from each other while both prompt in it. Whoever is told that a turn
// has ended well finds it in the history.
//
// Clauses S1, S3, S8.
func TestCompletedTurnsAreStored(t *testing.T) {
	var database pgtest.Server
	t.Cleanup(database.Stop)
	closed := func(t *testing.T, s interface {
		sessionstore.Store
		Close() error
	}) sessionstore.Store {
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	for name, stores := range map[string]func(t *testing.T) (one, other sessionstore.Store){
		"one server": func(t *testing.T) (one, other sessionstore.Store) {
			s := closed(t, sqlite.New(sqlite.Options{Dir: t.TempDir()}))
			return s, s
		},
		"two with SQLite": func(t *testing.T) (one, other sessionstore.Store) {
			dir := t.TempDir()
			return closed(t, sqlite.New(sqlite.Options{Dir: dir})),
				closed(t, sqlite.New(sqlite.Options{Dir: dir}))
		},
		"two with PostgreSQL": func(t *testing.T) (one, other sessionstore.Store) {
			address := database.Address(t)
			open := func() sessionstore.Store {
				s, err := postgres.New(postgres.Options{Address: address})
				require.NoError(t, err)
				return closed(t, s)
			}
			return open(), open()
		},
	} {
		t.Run("S8/"+name, func(t *testing.T) {
			one, other := stores(t)
			raceTurns(t, one, connect(t, acp.Options{Store: one}), connect(t, acp.Options{Store: other}))
		})
	}
}

// raceTurns lets clients load and prompt one session at once, and compares what they were answered
// with the history in store.
func raceTurns(t *testing.T, store sessionstore.Store, clients ...*client) {
	dir := folder(t)
	for _, c := range clients {
		c.initialize()
	}
	id := clients[0].open(dir)
	var mu sync.Mutex
	completed := 0
	for round := range volume.Of(10, 100) {
		var both sync.WaitGroup
		for i, c := range clients {
			both.Go(func() {
				_, load := c.request("session/load", rootsParams(id, dir))
				said := fmt.Sprintf("words %d of %d", round, i)
				prompt, line := c.request("session/prompt", promptParams(id, "say "+said))
				c.send(load, line)
				m := c.response(prompt)
				if m.Error != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				completed++
				if storedChunks(t, store, id, said) != 1 {
					t.Errorf("answered with %s, and not stored: %s", m.Result, said)
				}
			})
		}
		both.Wait()
	}
	require.NotZero(t, completed)
}
