//go:build unix

package mcpclient_test

import (
	"errors"
	"syscall"
)

// ended reports whether a process is gone.
func ended(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
