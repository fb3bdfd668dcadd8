//go:build !linux

package workspace

import (
	"os"
)

// sight is what a look at something tells.
type sight struct {
	info  os.FileInfo
	mount mountID
}

func sightOf(info os.FileInfo) sight { return sight{info, mountOf(info)} }

func (s sight) mode() os.FileMode { return s.info.Mode() }
func (s sight) isDir() bool       { return s.info.IsDir() }
func (s sight) isLink() bool      { return s.info.Mode()&linkTypes != 0 }
func (s sight) isRegular() bool   { return s.info.Mode().IsRegular() }

// is reports whether info describes what was seen.
func (s sight) is(info os.FileInfo) bool {
	return os.SameFile(s.info, info) && s.info.Mode().Type() == info.Mode().Type()
}
