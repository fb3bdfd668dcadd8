//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
)

// shows is Directory.Shows.
func (h *handle) shows(s *Seen) bool {
	if now, err := h.stampAt("."); err != nil || !s.isStill(now) {
		return false
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if now, err := h.stampAt(e.Name); err != nil || !e.Look.still(now) {
			return false
		}
	}
	for _, below := range s.Below {
		if !h.showsBelow(below) {
			return false
		}
	}
	return true
}

func (h *handle) showsBelow(s *Seen) bool {
	if s.isEmpty() {
		if now, err := h.stampAt(s.Name); err == nil && s.Look.still(now) {
			return true
		}
	}
	child, err := h.into(s.Name)
	if err != nil {
		return false
	}
	defer child.Close()
	return child.shows(s)
}

// stampAt is the stamp of name, without following a link.
func (h *handle) stampAt(name string) (stamp, error) {
	info, err := h.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	return stamp{info}, err
}
