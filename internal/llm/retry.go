package llm

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
)

// roundly returns a duration of more than a minute, rounded up: "90 minutes", "5 hours" or
// "3 days".
func roundly(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%g days", math.Ceil(d.Hours()/24))
	}
	if d >= 2*time.Hour {
		return fmt.Sprintf("%g hours", math.Ceil(d.Hours()))
	}
	return fmt.Sprintf("%g minutes", math.Ceil(d.Minutes()))
}

// retryAfter returns when the server wants the request again, 0 if it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := time.ParseDuration(h.Get("Retry-After-Ms") + "ms"); err == nil && ms > 0 {
		return ms
	}
	return untilReset(h.Get("Retry-After"), now)
}

// What responses say about when to send a request again: members, durations, and times.
var (
	delayMembers = text.Pattern(`(?i)"(?:retry_?delay|retry_?after(?:_seconds)?|` +
		`resets?_in_seconds|resets?_at|x-ratelimit-reset)"\s*:\s*"?([^",}\s]+)`)
	aboutDelay = text.Pattern(`(?i)` + delayVerbs + `((?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?) ?` +
		`(ms|[smhd])(?:econds?|inutes?|ours?|ays?)?\b`)
	aboutReset = text.Pattern(`(?i)` + delayVerbs + `(\d{4}-\d\d-\d\d)(?:T| at | )` +
		`(\d\d:\d\d)(:\d\d)?(?:\.\d+)? ?(Z|UTC|GMT|[+-]\d\d:\d\d)?`)
)

const delayVerbs = `(?:try again|retry|resets?|regain access|wait)\D{0,20}?\b`

// someday is the delay until a time without a zone.
const someday = time.Duration(math.MaxInt64)

// askedDelay returns how long a response asks to wait, in a member or a sentence, or 0.
func askedDelay(response []byte, now time.Time) time.Duration {
	said := string(response)
	if found := delayMembers().FindStringSubmatch(said); found != nil {
		return untilReset(found[1], now)
	}
	if found := aboutReset().FindStringSubmatch(said); found != nil {
		zone := strings.NewReplacer("UTC", "Z", "GMT", "Z").Replace(strings.ToUpper(found[4]))
		if zone == "" {
			return someday
		}
		return untilReset(found[1]+"T"+found[2]+cmp.Or(found[3], ":00")+zone, now)
	}
	found := aboutDelay().FindStringSubmatch(strings.ToLower(said))
	switch {
	case found == nil:
		return 0
	case found[2] == "d":
		return 24 * untilReset(found[1]+"h", now)
	}
	return untilReset(found[1]+found[2], now)
}

// limitReset returns when a limit that is used up is reset, according to headers as those of
// OpenAI, Anthropic and OpenRouter, or 0: for each limit, one says what remains, and another one
// when that changes.
func limitReset(h http.Header, now time.Time) (after time.Duration) {
	for name := range h {
		if lower := strings.ToLower(name); h.Get(name) == "0" &&
			strings.Contains(lower, "ratelimit") {
			reset := h.Get(strings.Replace(lower, "remaining", "reset", 1))
			after = max(after, untilReset(reset, now))
		}
	}
	return after
}

// untilReset returns how long it is until a time in a header or member: a time, a number of seconds
// or milliseconds since 1970, a number of seconds, or a duration.
func untilReset(reset string, now time.Time) time.Duration {
	const year = 365 * 24 * time.Hour
	at, err := time.Parse(time.RFC3339, reset)
	if err != nil {
		at, err = http.ParseTime(reset)
	}
	if err == nil {
		return max(0, at.Sub(now))
	}
	number, err := strconv.ParseFloat(reset, 64)
	switch after, _ := time.ParseDuration(reset); {
	case err != nil, math.IsNaN(number):
		return max(0, after)
	case number > float64(now.Add(-year).UnixMilli()):
		number = number/1e3 - float64(now.UnixMilli())/1e3
	case number > float64(now.Add(-year).Unix()):
		number -= float64(now.UnixMilli()) / 1e3
	}
	return time.Duration(max(0, min(number, year.Seconds())) *
		float64(time.Second)).Round(time.Millisecond)
}

// attempts returns how often a request that fails in this way is sent. With a fallback, it is not
// worth while to wait long.
func (c *Client) attempts(f *failure) int {
	if f.means.Busy && c.model.Fallback == "" {
		return patientAttempts
	}
	return attempts
}

// bound makes the failure final if the server asks for a longer wait than anybody likes to watch.
func (f *failure) bound() {
	if f.retry && f.after > longestDelay {
		f.retry = false
		if f.after < someday {
			f.why.Message += "; try again in " + roundly(f.after)
		}
	}
}
