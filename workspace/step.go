package workspace

import (
	"errors"
	"os"
)

// maxAttempts is how often something is tried anew because it changed meanwhile.
const maxAttempts = 64

var errChanging = errors.New("it keeps changing while it is being opened")

// One step down from a directory that is held by its handle. A name was looked at with Lstat and
// found to be no link; what is opened by that name must be what was seen, so a link
// that took its place meanwhile is noticed, and leads nowhere: it is followed within the directory
// at most. Both return errChanging then.

// stepInto opens the directory name of dir. The "." keeps it from waiting at a FIFO.
func stepInto(dir *handle, name string, seen os.FileInfo) (*handle, error) {
	child, err := dir.into(name)
	if err != nil {
		return nil, recheck(dir, name, seen, err)
	}
	if info, err := child.Lstat("."); err != nil || !os.SameFile(info, seen) {
		_ = child.Close()
		if err != nil {
			return nil, err
		}
		return nil, errChanging
	}
	return child, nil
}

// stepOnto opens the file name of dir for reading.
func stepOnto(dir *handle, name string, seen os.FileInfo) (*os.File, os.FileInfo, error) {
	f, err := dir.OpenFile(name, readFlags, 0)
	if err != nil {
		return nil, nil, recheck(dir, name, seen, err)
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, seen) {
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, errChanging
	}
	return f, info, nil
}

// openSeen opens for reading the file name of dir, which was seen, and is what path leads to.
func openSeen(dir *handle, name string, seen sight, path string) (*os.File, error) {
	if !seen.isRegular() {
		return nil, unfit(path, seen.mode())
	}
	f, err := dir.openRegular(name)
	if err != nil && err != errChanging {
		err = failed("open", path, err)
	}
	return f, err
}

// recheck is err, or errChanging if name is no longer what was seen.
func recheck(dir *handle, name string, seen os.FileInfo, err error) error {
	if now, lstatErr := dir.Lstat(name); lstatErr == nil && !os.SameFile(now, seen) {
		return errChanging
	}
	return err
}

// retry does it again as long as it fails with errChanging, up to a limit.
func retry(it func() error) error {
	err := it()
	for range maxAttempts {
		if !errors.Is(err, errChanging) {
			break
		}
		err = it()
	}
	return err
}
