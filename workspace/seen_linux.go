package workspace

import "golang.org/x/sys/unix"

// shows is Directory.Shows.
func (h *handle) shows(s *Seen) bool {
	same := false
	err := h.use(".", func(fd int) error {
		same = shows(fd, s)
		return nil
	})
	return err == nil && same
}

// shows works on descriptors, since a handle for each directory costs as much as the calls of the system. What bears the device
// and inode of a directory that was entered before is that directory, so it is granted still.
func shows(fd int, s *Seen) bool {
	if now, err := stampOfOpen(fd); err != nil || !s.isStill(now) {
		return false
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if now, err := stampAt(fd, e.Name); err != nil || !e.Look.still(now) {
			return false
		}
	}
	for _, below := range s.Below {
		if !showsBelow(fd, below) {
			return false
		}
	}
	return true
}

func showsBelow(fd int, s *Seen) bool {
	if !inside(s.Name) {
		return false
	}
	if s.isEmpty() {
		if now, err := stampAt(fd, s.Name); err == nil && s.Look.still(now) {
			return true
		}
	}
	var child int
	err := uninterrupted(func() (err error) {
		child, err = unix.Openat(fd, s.Name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return false
	}
	defer unix.Close(child)
	return shows(child, s)
}
