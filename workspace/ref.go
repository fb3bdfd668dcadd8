package workspace

// Ref is where something is: the root that owns it and the path inside that root. A
// Ref holds no links and no "..": it is what a path resolved to when it was
// opened. It says nothing about later.
type Ref struct {
	root Root
	rel  string
}

// Root is the root that owns it: of nested roots the longest.
func (r Ref) Root() Root { return r.root }

// Rel is the slash-separated path inside the root, "." for the root itself.
func (r Ref) Rel() string { return r.rel }

// Root is one opened root of a Workspace.
type Root struct {
	// Index is its place in [cwd, ...additionalDirectories], 0 for cwd.
	Index int
	// Dir is the client's spelling.
	Dir Dir
	// Real is the real path when the root was opened.
	Real Dir
}
