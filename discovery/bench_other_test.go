//go:build !unix

package discovery_test

import "time"

// spent is the time that it takes.
func spent(it func()) time.Duration {
	began := time.Now()
	it()
	return time.Since(began)
}
