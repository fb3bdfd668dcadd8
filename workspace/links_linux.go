package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// stillNamed fails with errChanging unless f, which was opened as name, has had that name since then. How many names
// a file has says nothing about where they are: of two, the one that it was opened by may be gone when they are counted, and
// the other is elsewhere. A name that an open file has lost never comes back to it, whatever is made in its
// place; so if it has its name after the count, that was the one that was counted.
func (h *handle) stillNamed(f *os.File, name string) error {
	// Whoever removes a name takes it off the count, and then off the file. Both is done under the lock of the
	// directory, for which this waits: there is no such name.
	if err := h.Remove(hiddenName()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var path, dir string
	if controlErr := conn.Control(func(fd uintptr) { path, err = pathOf(int(fd)) }); controlErr != nil {
		return controlErr
	}
	if err == nil {
		err = h.do(".", func(fd int) (err error) {
			dir, err = pathOf(fd)
			return err
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("whether it has names elsewhere cannot be told without /proc: %w", cause(err))
	case path != strings.TrimSuffix(dir, "/")+"/"+name:
		return errChanging
	default:
		return nil
	}
}

// pathOf is where an open file is, as the kernel says it.
func pathOf(fd int) (string, error) { return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)) }
