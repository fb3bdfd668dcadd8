//go:build unix

package discovery_test

import (
	"runtime"
	"syscall"
	"time"
)

// spent is the time that the processors spend on it, inARow times, and not on what came before.
func spent(it func()) time.Duration {
	runtime.GC()
	before := used()
	for range inARow {
		it()
	}
	return used() - before
}

func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
