package workspace

import "strings"

// Ref is where something is: the root that owns it and the path inside that root. A
// Ref holds no links and no "..": it is what a path resolved to when it was
// opened. It says nothing about later.
type Ref struct {
	root Root
	rel  string
}

// Root is the root that owns it: of nested roots the deepest, of roots with one real
// path the first.
func (r Ref) Root() Root { return r.root }

// Rel is the slash-separated path inside the root, "." for the root itself.
func (r Ref) Rel() string { return r.rel }

// Path is the absolute path that starts with the client's spelling of the root: what an editor is
// shown. A Workspace of the same roots opens it.
func (r Ref) Path() string { return r.in(r.root.Dir) }

// Real is the absolute path that starts with the root's real path.
func (r Ref) Real() string { return r.in(r.root.Real) }

func (r Ref) in(dir Dir) string {
	if r.rel == "." {
		return dir.path
	}
	rel := native{}.join("", strings.Split(r.rel, "/"))
	if last := dir.path[len(dir.path)-1]; last == '/' || last == '\\' {
		return dir.path + rel
	}
	return dir.path + native{}.join("", []string{"", rel})
}

// child is name in the directory that r is.
func (r Ref) child(name string) Ref {
	if r.rel == "." {
		return Ref{r.root, name}
	}
	return Ref{r.root, r.rel + "/" + name}
}

// Root is one opened root of a Workspace.
type Root struct {
	// Index is its place in [cwd, ...additionalDirectories], 0 for cwd.
	Index int
	// Dir is the client's spelling.
	Dir Dir
	// Real is the real path when the root was opened.
	Real Dir
}

// ref is a real location in root.
func (w *Workspace) ref(root int, at location) Ref {
	names := at.names[len(w.real[root].names):]
	if len(names) == 0 {
		return Ref{w.opened[root], "."}
	}
	return Ref{w.opened[root], strings.Join(names, "/")}
}
