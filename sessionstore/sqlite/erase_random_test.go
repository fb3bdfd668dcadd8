package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// marked makes random sessions whose texts all have marks, so that what is left of a deleted one is
// found in the bytes of the files.
type marked struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	stores []*sqlite.Store // of two windows
	leases map[sessionstore.ID]sessionstore.Lease
	marks  map[sessionstore.ID][]string
	shared map[string]bool // marks in histories that were forked
	gone   []string        // the marks of deleted sessions
	n      int
}

// mark returns a text with a new mark of a session. A few are too long for a page. The mark is a
// random word, which has little in common with others, by which the index could shorten it.
func (m *marked) mark(id sessionstore.ID) string {
	text := fmt.Sprintf("%016x", m.random.Uint64())
	m.marks[id] = append(m.marks[id], text)
	length := m.random.IntN(40)
	if m.random.IntN(8) == 0 {
		length = m.random.IntN(20_000)
	}
	return strings.Repeat("x", length/2) + " " + text + " " + strings.Repeat("y", length-length/2)
}

func (m *marked) store() *sqlite.Store { return m.stores[m.random.IntN(len(m.stores))] }

func (m *marked) create() {
	m.n++
	id := sessionstore.ID(fmt.Sprintf("MARK<%06d>", m.n))
	m.marks[id] = []string{string(id)}
	lease, err := m.store().Create(m.t.Context(), sessionstore.Session{
		ID: id, Agent: sessionstore.Agent{Kind: "explore"}, Title: m.mark(id),
		Keys:  storetest.Keys(m.t, "app", "root "+m.mark(id)),
		State: []byte(m.mark(id)), StateKey: m.mark(id),
	})
	require.NoError(m.t, err)
	m.leases[id] = lease
}

func (m *marked) updates(id sessionstore.ID) (all []sessionstore.Update) {
	for range 1 + m.random.IntN(6) {
		all = append(all, storetest.Said(m.mark(id))...)
	}
	return append(all, sessionstore.StoredUpdate(fmt.Appendf(nil,
		`{"update":{"sessionUpdate":"current_mode_update","currentModeId":%q}}`, m.mark(id))))
}

// use does something with a session.
func (m *marked) use(id sessionstore.ID) {
	ctx, s, lease := m.t.Context(), m.store(), m.leases[id]
	var err error
	switch m.random.IntN(7) {
	case 0, 1:
		n := storetest.Begin(m.t, s, lease, sessionstore.Turn{Prompt: storetest.Said(m.mark(id))})
		require.NoError(m.t, s.Append(ctx, lease, m.updates(id)))
		err = s.EndTurn(ctx, lease, n)
	case 2:
		err = s.SetTitle(ctx, lease, m.mark(id))
	case 3:
		err = s.SaveState(ctx, lease, []byte(m.mark(id)), m.mark(id))
	case 4:
		m.leases[id], err = s.Move(ctx, lease, storetest.Keys(m.t, "app", "moved "+m.mark(id)))
	case 5:
		var d sessionstore.Draft
		d, err = s.NewDraft(ctx, id)
		require.NoError(m.t, err)
		require.NoError(m.t, d.Append(ctx, m.updates(id)))
		if m.random.IntN(2) == 0 {
			m.leases[id], err = s.Activate(ctx, id, sessionstore.Activation{
				Keys: storetest.Keys(m.t, "app"), History: d})
		}
	case 6:
		err = s.Append(ctx, lease, m.updates(id))
	}
	require.NoError(m.t, err)
}

// fork forks a session. What both have stays while one of them does.
func (m *marked) fork(id sessionstore.ID) {
	m.n++
	fork := sessionstore.ID(fmt.Sprintf("MARK<%06d>", m.n))
	m.marks[fork] = []string{string(fork)}
	lease, err := m.store().Fork(m.t.Context(), id, sessionstore.Session{
		ID: fork, Agent: sessionstore.Agent{Kind: "explore"}, Keys: storetest.Keys(m.t, "app"),
		Title: m.mark(fork)})
	require.NoError(m.t, err)
	m.leases[fork] = lease
	for _, mark := range m.marks[id] {
		m.shared[mark] = true
	}
}

func (m *marked) delete(id sessionstore.ID) {
	require.NoError(m.t, m.store().Delete(m.t.Context(), id))
	for _, mark := range m.marks[id] {
		if !m.shared[mark] {
			m.gone = append(m.gone, mark)
		}
	}
	delete(m.leases, id)
}

// reopen closes a window and opens another one.
func (m *marked) reopen(i int, o sqlite.Options) {
	if s := m.stores[i]; s != nil {
		require.NoError(m.t, s.Close())
	}
	m.stores[i] = sqlite.New(o)
}

// left returns the marks of deleted sessions that are in files.
func (m *marked) left(files []byte) (found []string) {
	for _, mark := range m.gone {
		if bytes.Contains(files, []byte(mark[4:])) { // the index leaves out what is shared
			found = append(found, mark)
		}
	}
	return found
}

// Whatever sessions were made, changed and deleted, in whatever order, and however the store was
// closed and its log moved in between, no text of a deleted one is in any file.
//
// Clause S10.
func TestNothingIsLeftOfRandomSessions(t *testing.T) {
	// Without the VACUUM something was left by some of these.
	seeds := []int{4, 5, 18}
	for seed := range volume.Of(0, 60) {
		if !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			journal := []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback}[seed%2]
			o := sqlite.Options{Dir: t.TempDir()}.WithPurgeDelay(time.Millisecond).WithJournal(journal)
			m := &marked{t: t, dir: o.Dir, random: rand.New(rand.NewPCG(uint64(seed), 1)),
				stores: make([]*sqlite.Store, 2), leases: map[sessionstore.ID]sessionstore.Lease{},
				marks: map[sessionstore.ID][]string{}, shared: map[string]bool{}}
			m.reopen(0, o)
			m.reopen(1, o)
			for range 100 + m.random.IntN(300) {
				m.step(o)
			}
			require.Eventually(t, m.stores[0].Purged, volume.Patience, 10*time.Millisecond)
			require.NoError(t, m.stores[0].Close())
			require.NoError(t, m.stores[1].Close())
			require.Empty(t, m.left(contents(t, m.dir)), "of %d", len(m.gone))
			require.Equal(t, "ok", integrity(t, m.dir))
			require.NotEmpty(t, m.gone)
		})
	}
}

// step does something random.
func (m *marked) step(o sqlite.Options) {
	ids := slices.Sorted(maps.Keys(m.leases))
	if len(ids) < 5 {
		m.create()
		return
	}
	id := ids[m.random.IntN(len(ids))]
	switch n := m.random.IntN(40); {
	case n < 12:
		m.create()
	case n < 28:
		m.use(id)
	case n < 30:
		m.fork(id)
	case n < 38:
		m.delete(id)
	case n < 39:
		m.reopen(m.random.IntN(2), o)
	default:
		db, err := sql.Open("sqlite", filepath.Join(m.dir, "sessions.db"))
		require.NoError(m.t, err)
		_, err = db.Exec("PRAGMA busy_timeout = 10000; PRAGMA wal_checkpoint(FULL)")
		require.NoError(m.t, err)
		require.NoError(m.t, db.Close())
	}
}
