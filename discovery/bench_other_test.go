//go:build !unix

package discovery_test

import (
	"runtime"
	"time"
)

// spent is the time that it takes, inARow times, and not what came before.
func spent(it func()) time.Duration {
	runtime.GC()
	began := time.Now()
	for range inARow {
		it()
	}
	return time.Since(began)
}
