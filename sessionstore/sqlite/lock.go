package sqlite

import (
	"errors"
	"os"
)

// errLocked: another process is opening the store.
var errLocked = errors.New("another program is opening it")

// lockFile locks the file at path, which is made if it is missing and stays for good: a lock on a file that
// was removed meanwhile would exclude nobody. It does not wait: the error is [errLocked].
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	// Closing it gives the lock back.
	return func() { f.Close() }, nil
}
