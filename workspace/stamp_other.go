//go:build !linux

package workspace

import "os"

// stamp tells one state of one file from all others, as far as the system does. The zero stamp is that of nothing.
type stamp struct{ info os.FileInfo }

func (s stamp) there() bool { return s.info != nil }

func (s stamp) is(other stamp) bool {
	if !s.there() || !other.there() {
		return s.there() == other.there()
	}
	return identical(s.info, other.info) && s.info.Mode() == other.info.Mode() &&
		s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}

// isThing reports whether both are of one thing, in whatever state.
func (s stamp) isThing(other stamp) bool {
	return s.there() && other.there() && os.SameFile(s.info, other.info)
}

// stampOf is the stamp of what info describes.
func stampOf(info os.FileInfo) (stamp, bool) { return stamp{info}, true }
