package workspace

// Workspace is an opened root set. It is safe for concurrent use. [Open] makes one,
// and Close ends it: operations that run finish, later ones fail with [ErrClosed].
type Workspace struct {
	roots Roots
}

// Roots is the root set that was opened.
func (w *Workspace) Roots() Roots { return w.roots }

// Options configure [Open].
type Options struct {
	// MaxRoots is the most roots a set may have, cwd included. Default 64 (A6).
	MaxRoots int
	// Policy says which directories may be roots.
	Policy Policy
}

// Policy is judged on real paths. The zero value allows everything.
type Policy struct {
	// Allow, if not empty, lists the directories in or below which every root must lie.
	Allow []Dir
	// Deny lists directories that no root may lie in or below. One that lies below a
	// root is refused at each access.
	Deny []Dir
}
