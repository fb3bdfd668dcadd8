package tools

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// Place is where something is, as answers say it: in the client's spelling.
type Place struct {
	// Path is absolute.
	Path string `json:"path"`
	// Root is the root that owns it: of nested roots the deepest.
	Root string `json:"root"`
}

// PlaceOf is the place of what a reference names.
func PlaceOf(ref workspace.Ref) Place {
	return Place{Path: ref.Path(), Root: ref.Root().Dir.String()}
}

// in is the place of the entry name of a directory at p.
func (p Place) in(name string) Place { return Place{joinNative(p.Path, name), p.Root} }

// joinNative is the path of an entry of dir, spelled the platform's way.
func joinNative(dir, name string) string {
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return dir + name
}

// parent is the place of the directory that holds name, which is at p. It keeps the separator at its end.
func (p Place) parent(name string) Place {
	return Place{strings.TrimSuffix(p.Path, name), p.Root}
}
