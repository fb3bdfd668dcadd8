// Package httpx holds small things around net/http.
package httpx

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads how long a response asks its client to wait, in either form of the
// header: seconds, or a date. ok is false if there is none.
func RetryAfter(header http.Header, now time.Time) (wait time.Duration, ok bool) {
	value := header.Get("Retry-After")
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(seconds)*time.Second), true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	// FIXME: a clock that is wrong by hours makes a wait of hours.
	return max(0, date.Sub(now)), true
}
