package workspace

// Roots is the ordered root set of a session, [cwd, ...additionalDirectories] (clause
// A20): absolute, normalised, without exact duplicates, nested and overlapping roots
// kept (A7, A8). It is immutable and safe to share. Only [NewRoots] makes one; the zero
// value is no root set.
type Roots struct {
	cwd        Dir
	additional Dirs
}

// Cwd is the first root.
func (r Roots) Cwd() Dir { return r.cwd }

// Additional are the roots after cwd.
func (r Roots) Additional() Dirs { return r.additional }
