package workspace

import (
	"os"
	"time"
)

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
