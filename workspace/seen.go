package workspace

import (
	"os"
	"time"
)

// Seen is what a directory looked like, as far as somebody depends on it. [Directory.Shows] tells whether it still looks
// like that. Whoever looks fills it in, a directory before what is in it, so that what changes meanwhile shows later.
type Seen struct {
	// Name is the directory's in the one that it is in. The first one's does not matter.
	Name string
	// Look is that at the directory itself.
	Look Look
	// Listed: which names are in it matters.
	Listed bool
	// Entries are names in it that matter, whether something bears them or not.
	Entries []SeenEntry
	// Below are directories in it, not links to such.
	Below []*Seen
}

// SeenEntry is a look at a name in a directory: at a link itself.
type SeenEntry struct {
	Name string
	Look Look
}

// Shows reports whether the directory, and all that s says of it, certainly is as it was. It is meant to be asked often: it
// reads no file and lists no directory, and looks at each once. On Linux that takes four calls of the system for a
// directory with one file, and no memory.
//
// Only what was seen is looked into: a link, a mount or another directory that took the place of a directory
// answers the question, and leads nowhere.
func (d *Directory) Shows(s *Seen) bool {
	if d.w.begin() != nil {
		return false
	}
	defer d.w.end()
	return d.handle.shows(s)
}

// isEmpty reports whether all that matters in the directory are its names, or what it does not have. As long as it is
// unchanged, so is that, and it need not be opened.
func (s *Seen) isEmpty() bool {
	for i := range s.Entries {
		if s.Entries[i].Look.stamp.there() {
			return false
		}
	}
	return len(s.Below) == 0
}

// isStill reports whether now is the stamp of the directory that was seen, with the names that it had if those matter.
func (s *Seen) isStill(now stamp) bool {
	if s.Listed {
		return s.Look.still(now)
	}
	return s.Look.stamp.isThing(now)
}

// Look is what one look at a file or directory told that changes when it does: which one it is, its type, permissions,
// size and times. On Unix the time of the last change of any kind is among them, which nobody can set. The zero Look is
// that nothing is there.
type Look struct {
	stamp     stamp
	uncertain bool // it may have changed since without a trace
}

// settled is how old a change must be, because times of files are coarse: what was changed twice within a tick, and looked at
// in between, looks the same after.
const settled = 2 * time.Second

// LookOf is the look that told info, and did not begin before began. Nil is for nothing. The info is what this package or
// package os tells of a file.
func LookOf(info os.FileInfo, began time.Time) Look {
	if info == nil {
		return Look{}
	}
	s, ok := stampOf(info)
	return Look{s, !ok || began.Sub(info.ModTime()) <= settled}
}

// Still reports whether the later look was at the same thing, or at nothing again, and certainly nothing of it changed
// between. That is not certain of what had been changed less than two seconds before the first look.
func (l Look) Still(later Look) bool { return l.still(later.stamp) }

func (l Look) still(now stamp) bool { return !l.uncertain && l.stamp.is(now) }
