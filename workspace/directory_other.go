//go:build !linux

package workspace

import "os"

// describe describes name, without opening it.
func (h *handle) describe(name string) (os.FileInfo, error) { return h.Lstat(name) }

// readRegular reads the regular file name, which was seen to be one, into buf or a larger one, unless it has more
// than limit bytes. It fails with errChanging if it is something else by now.
func (h *handle) readRegular(name string, buf []byte, limit int64) ([]byte, os.FileInfo, error) {
	f, err := h.openRegular(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return readFile(f, buf, limit)
}

// intoDescribed is intoToList. What it opened is not known.
func (h *handle) intoDescribed(name string) (*handle, os.FileInfo, error) {
	child, err := h.intoToList(name)
	return child, nil, err
}
