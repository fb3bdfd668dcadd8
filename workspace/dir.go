package workspace

// Dir is an absolute directory path in the spelling of its sender, normalised by
// clause A8: no "." components, no repeated or trailing separators; ".." and
// links are left alone. Dirs compare with ==. The zero Dir is no directory.
type Dir struct{ path string }

// String is the path, "" for the zero Dir.
func (d Dir) String() string { return d.path }

// IsZero reports whether d is no directory.
func (d Dir) IsZero() bool { return d.path == "" }

// Dirs is an ordered list of directories without exact duplicates. It is immutable; the
// zero value is the empty list.
type Dirs struct{ list []Dir }
