package llm

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// roundly returns a duration of more than a minute, rounded up: "90 minutes" or "5 hours".
func roundly(d time.Duration) string {
	if d >= 2*time.Hour {
		return fmt.Sprintf("%g hours", math.Ceil(d.Hours()))
	}
	return fmt.Sprintf("%g minutes", math.Ceil(d.Minutes()))
}

// retryAfter returns when the server wants the request again, 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const longest = 1e6 // seconds
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms/1e3, longest) * float64(time.Second))
	}
	after := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, longest) * float64(time.Second))
	}
	if date, err := http.ParseTime(after); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// retryDelay returns how long the server asks to wait in its response, as Google's do, or 0.
func retryDelay(response []byte) time.Duration {
	_, after, _ := bytes.Cut(response, []byte(`"retryDelay"`))
	value := bytes.SplitN(after, []byte(`"`), 3) // the colon, and what is between quotes
	if len(value) < 3 {
		return 0
	}
	delay, _ := time.ParseDuration(string(value[1]))
	return max(0, delay)
}

var aboutDelay = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:try again|retry)\D{0,20}?\b` +
		`((?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|s|m|h))\b|` +
		`(?:try again|retry)\D{0,20}?\b(\d+) (second|minute|hour)`)
})

// namedDelay returns how long the words of an error ask to wait, such as "try again in 8s", or 0.
func namedDelay(message string) time.Duration {
	found := aboutDelay().FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	named := found[1]
	if named == "" {
		named = found[2] + found[3][:1]
	}
	delay, _ := time.ParseDuration(strings.ToLower(named))
	return max(0, delay)
}

// limitReset returns when a limit that is used up is reset, according to headers as those of OpenAI,
// Anthropic and OpenRouter, or 0: for each limit, one says what remains, and another one when that
// changes.
func limitReset(h http.Header, now time.Time) (after time.Duration) {
	for name := range h {
		if lower := strings.ToLower(name); h.Get(name) == "0" && strings.Contains(lower, "ratelimit") {
			reset := h.Get(strings.Replace(lower, "remaining", "reset", 1))
			after = max(after, untilReset(reset, now))
		}
	}
	return after
}

// untilReset returns how long it is until a time in a header: a time, a number of seconds or
// milliseconds since 1970, or a duration.
func untilReset(reset string, now time.Time) time.Duration {
	const year = 365 * 24 * time.Hour
	if at, err := time.Parse(time.RFC3339, reset); err == nil {
		return max(0, at.Sub(now))
	}
	number, err := strconv.ParseInt(reset, 10, 64)
	switch after, _ := time.ParseDuration(reset); {
	case err != nil:
		return max(0, after)
	case number > now.Add(-year).UnixMilli():
		return max(0, time.UnixMilli(number).Sub(now))
	case number > now.Add(-year).Unix():
		return max(0, time.Unix(number, 0).Sub(now))
	}
	return time.Duration(min(max(number, 0), int64(year/time.Second))) * time.Second
}

// attempts returns how often a request that fails in this way is sent. With a fallback, it is not
// worth while to wait long. An error in an answer has no status.
func (c *Client) attempts(e *Error) int {
	statuses := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, statusOverloaded}
	busy := slices.Contains(statuses, e.Status) ||
		e.Status == 0 && containsAny(strings.ToLower(e.Message), busyWords...)
	if !busy || c.model.Fallback != "" || e.Kind != Overloaded {
		return attempts
	}
	return patientAttempts
}

// statusOverloaded is the status with which Anthropic's servers and others say that they are
// overloaded.
const statusOverloaded = 529

// bounded returns the failure, which is final if the server asks for a longer wait than anybody
// likes to watch.
func (f failure) bounded() *failure {
	if f.retry && f.after > longestDelay {
		f.retry = false
		e := *f.Error
		e.Message += "; try again in " + roundly(f.after)
		f.Error = &e
	}
	return &f
}
