//go:build unix

package discovery_test

import (
	"syscall"
	"time"
)

// spent is the time that the processors spend on it.
func spent(it func()) time.Duration {
	before := used()
	it()
	return used() - before
}

func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
