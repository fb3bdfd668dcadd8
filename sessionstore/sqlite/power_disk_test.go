package sqlite_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// powerless is a disk as it is when the power fails: what was synced is on it, and of the rest nobody knows. Names
// are made and lost in their order, as file systems with a journal have it, and a sync of any file is one of them too.
type powerless struct {
	files   map[int][]byte
	names   map[string]int
	pending []deed
	// promised is how many answers had been given when something was last synced.
	answers, promised int
}

func (p *powerless) do(d deed) {
	switch d.kind {
	case deedAnswer:
		p.answers++
	case deedSync:
		p.settle(func(o deed) bool { return o.file == d.file || o.named() })
		p.promised = p.answers
	case deedSyncNames:
		p.settle(deed.named)
	default:
		p.pending = append(p.pending, d)
	}
}

func (d deed) named() bool { return d.kind == deedName || d.kind == deedUnname }

// settle applies the pending deeds that are now on the disk for good.
func (p *powerless) settle(which func(deed) bool) {
	p.pending = slices.DeleteFunc(p.pending, func(d deed) bool {
		if !which(d) {
			return false
		}
		p.apply(d, len(d.data))
		return true
	})
}

// apply does d, of a write the first n bytes.
func (p *powerless) apply(d deed, n int) {
	content := p.files[d.file]
	switch d.kind {
	case deedName:
		p.names[d.name] = d.file
	case deedUnname:
		delete(p.names, d.name)
	case deedCut:
		p.files[d.file] = resized(content, int(d.at))
	case deedWrite:
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

// leave writes what is left to dir. Of what was not synced, any part may be: of the names those that came first, of
// the rest each with the given probability, and of a write perhaps some sectors only.
func (p *powerless) leave(t *testing.T, dir string, random *rand.Rand, chance float64) {
	t.Helper()
	left := powerless{files: map[int][]byte{}, names: maps.Clone(p.names)}
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
