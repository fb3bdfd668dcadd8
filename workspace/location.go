package workspace

import "slices"

// location is a path taken apart: where its tree starts ("/", a drive, a share; "" for
// a relative path) and the names from there on. It has no empty and no "." names.
type location struct {
	top   string
	names []string
}

func locate(path string) location {
	top, names, _ := native{}.split(path)
	return location{top, names}
}

// String is the path in the platform's own form.
func (l location) String() string { return native{}.join(l.top, l.names) }

// below reports whether l is dir or lies below it.
func (l location) below(dir location) bool {
	return len(l.names) >= len(dir.names) &&
		native{}.same(l.top, dir.top) &&
		slices.EqualFunc(l.names[:len(dir.names)], dir.names, native{}.same)
}

func (l location) equal(other location) bool {
	return len(l.names) == len(other.names) && l.below(other)
}

// child is l and a name. It shares nothing with l.
func (l location) child(names ...string) location {
	return location{l.top, slices.Concat(l.names, names)}
}

// parent is the directory above l, which for the top is the top itself.
func (l location) parent() location {
	if len(l.names) == 0 {
		return l
	}
	return location{l.top, l.names[:len(l.names)-1]}
}
