package workspace

// DefaultMaxRoots is the most roots of a set where Options name no other number.
const DefaultMaxRoots = 64

// DefaultMaxEntries is the most entries of a directory where Options name no other number.
const DefaultMaxEntries = 250_000

// Options configure [Open].
type Options struct {
	// MaxRoots is the most roots a set may have, cwd included. Default 64 (A6).
	MaxRoots int
	// Mounts says which mounts below a root belong to it. Default ExistingMounts (C7).
	Mounts Mounts
	// MaxEntries is the most entries of a directory that are listed. Default 250,000. A larger one is
	// listed so far, and a *[LimitError] says so.
	MaxEntries int
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
