package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// TestPowerLoss simulates power failures at many points: from the recorded operations of a store it
// derives what a disk may contain then, where only what was synced is certain, and opens that.
//
// Clause S1.
func TestPowerLoss(t *testing.T) {
	failures := volume.Of(8, 500)
	for _, journal := range []sqlite.Journal{sqlite.JournalWAL, sqlite.JournalRollback} {
		t.Run("S1/"+string(journal), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, 6))
			ops := useStore(t, journal, random)
			disk := simulatedDisk{files: map[int][]byte{}, names: map[string]int{}}
			for i, d := range ops {
				disk.do(d)
				if random.IntN(len(ops)) < failures {
					dir := t.TempDir()
					chance := []float64{0, 0.5, 0.99, 1}[random.IntN(4)]
					disk.writeTo(t, dir, random, chance)
					when := fmt.Sprintf("behind fileOp %d of %d, what was not synced kept with %v", i, len(ops), chance)
					requireIntact(t, dir, disk.durable, disk.answers, when)
				}
			}
			require.GreaterOrEqual(t, disk.durable, answers-1, "a closed store loses at most the last commit")
		})
	}
}

// answers is the number of calls of which [useStore] records the return.
const answers = 110

// useStore uses a new store and returns the operations on its files. The first recorded return is
// that of creating session "one", the others are of appending a word to it.
func useStore(t *testing.T, journal sqlite.Journal, random *rand.Rand) []fileOp {
	t.Helper()
	dir := dirtest.New(t)
	r, stop := record(t, dir)
	defer stop()
	s := sqlite.New(sqlite.Options{Dir: dir}.WithJournal(journal))
	lease := storetest.Create(t, s, "one")
	r.answered()
	for n := range answers - 1 {
		words := storetest.Said(fmt.Sprint(n), strings.Repeat("x", random.IntN(100_000)))
		require.NoError(t, s.Append(t.Context(), lease, words))
		r.answered()
		if n%7 == 0 {
			other := storetest.Create(t, s, fmt.Sprint("other ", n))
			storetest.Begin(t, s, other,
				sessionstore.Turn{Prompt: storetest.Said(strings.Repeat("y", 60_000))})
		}
		if n == 20 || n == 40 {
			require.NoError(t, s.Delete(t.Context(), sessionstore.ID(fmt.Sprint("other ", n-n%7))))
		}
	}
	require.NoError(t, s.Close())
	require.Zero(t, r.temporary.Load(), "nothing is written elsewhere")
	return r.recorded()
}

// requireIntact opens the store in dir. At least the given number of results must be kept, and
// nothing may be damaged.
func requireIntact(t *testing.T, dir string, least, given int, when string) {
	t.Helper()
	s := sqlite.New(sqlite.Options{Dir: dir})
	page, err := s.List(t.Context(), sessionstore.Query{Limit: sessionstore.MaxPageSize})
	require.NoError(t, err, when)
	for _, session := range page.Sessions {
		for _, err := range s.History(t.Context(), session.ID) {
			require.NoError(t, err, when)
		}
	}
	kept := keptAnswers(t, s, when)
	require.GreaterOrEqual(t, kept, least, when)
	require.LessOrEqual(t, kept, given+1, when)
	storetest.Create(t, s, "after")
	require.NoError(t, s.Close(), when)
	require.Equal(t, "ok", integrity(t, dir), when)
}

// keptAnswers returns how many results of [useStore] s contains, which must be the first ones.
func keptAnswers(t *testing.T, s *sqlite.Store, when string) int {
	t.Helper()
	updates := 0
	for u, err := range s.History(t.Context(), "one") {
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			return 0
		}
		require.NoError(t, err, when)
		if updates%2 == 0 {
			require.JSONEq(t, storetest.Said(fmt.Sprint(updates / 2))[0].String(), u.String(), when)
		}
		updates++
	}
	return 1 + updates/2
}

// sector is the size that a disk writes atomically.
const sector = 512

// simulatedDisk is a disk whose power may fail: what was synced is on it, the rest may be. Names
// are created and deleted in order, as on file systems with a journal, and a sync of any file
// includes them.
type simulatedDisk struct {
	files   map[int][]byte
	names   map[string]int
	pending []fileOp
	// durable is the number of calls that had returned at the last sync.
	answers, durable int
}

func (p *simulatedDisk) do(d fileOp) {
	switch d.kind {
	case opReturn:
		p.answers++
	case opSync:
		p.settle(func(o fileOp) bool { return o.file == d.file || o.named() })
		p.durable = p.answers
	case opSyncDir:
		p.settle(fileOp.named)
	default:
		p.pending = append(p.pending, d)
	}
}

func (d fileOp) named() bool { return d.kind == opCreate || d.kind == opDelete }

// settle applies the pending operations that are now on the disk.
func (p *simulatedDisk) settle(which func(fileOp) bool) {
	p.pending = slices.DeleteFunc(p.pending, func(d fileOp) bool {
		if !which(d) {
			return false
		}
		p.apply(d, len(d.data))
		return true
	})
}

// apply applies d, of a write only the first n bytes.
func (p *simulatedDisk) apply(d fileOp, n int) {
	content := p.files[d.file]
	switch d.kind {
	case opCreate:
		p.names[d.name] = d.file
	case opDelete:
		delete(p.names, d.name)
	case opTruncate:
		p.files[d.file] = resized(content, int(d.at))
	case opWrite:
		end := int(d.at) + n
		content = resized(content, max(end, len(content)))
		copy(content[d.at:end], d.data)
		p.files[d.file] = content
	}
}

func resized(content []byte, n int) []byte {
	if n <= len(content) {
		return content[:n:n]
	}
	return append(content, make([]byte, n-len(content))...)
}

// writeTo writes to dir what is left after a power failure. Of what was not synced any part may be
// left: the first of the names, and each of the rest with the given probability, sometimes only
// some sectors of a write.
func (p *simulatedDisk) writeTo(t *testing.T, dir string, random *rand.Rand, chance float64) {
	t.Helper()
	left := simulatedDisk{files: map[int][]byte{}, names: maps.Clone(p.names)}
	for file, content := range p.files {
		left.files[file] = slices.Clone(content)
	}
	lost := false
	for _, d := range p.pending {
		kept := random.Float64() < chance
		if d.named() {
			lost = lost || !kept
			kept = !lost
		}
		if !kept {
			continue
		}
		n := len(d.data)
		if n > sector && random.IntN(40) == 0 {
			n = sector * random.IntN(n/sector)
		}
		left.apply(d, n)
	}
	for name, file := range left.names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), left.files[file], 0o600))
	}
}
