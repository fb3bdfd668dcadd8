package llm

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"regexp"
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

// limitReset returns when a limit that is used up is reset, according to headers as OpenAI sends
// them, or 0.
func limitReset(h http.Header) (after time.Duration) {
	for _, limit := range []string{"requests", "tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+limit) == "0" {
			reset, _ := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + limit))
			after = max(after, reset)
		}
	}
	return after
}
