package tools

import (
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// File is a file that a [Scan] has come to.
type File struct {
	in   *batch
	name string
}

// Root is the root from which the scan came to the file, which need not be the one that owns it.
func (f File) Root() workspace.Root { return f.in.from.root }

// Rel is its slash-separated path in that root.
func (f File) Rel() string { return joinSlash(f.in.rel, f.name) }

// Path is its absolute path, which begins with the client's spelling of that root.
func (f File) Path() string {
	path := f.Root().Dir.String()
	if f.in.rel != "" {
		path = joinNative(path, filepath.FromSlash(f.in.rel))
	}
	return joinNative(path, f.name)
}

// Place is where it is, with the root that owns it.
func (f File) Place() Place { return f.in.place.in(f.name) }

// joinSlash is the slash-separated path of what is at name in dir; each may be "" for nothing.
func joinSlash(dir, name string) string {
	if dir == "" || name == "" {
		return dir + name
	}
	return dir + "/" + name
}

// cutLast cuts the last name off a slash-separated path.
func cutLast(path string) (dir, name string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:max(slash, 0)], path[slash+1:]
}

// ofTop is the path of a [workspace.Ref] in its root with "" for the root itself.
func ofTop(rel string) string {
	if rel == "." {
		return ""
	}
	return rel
}
