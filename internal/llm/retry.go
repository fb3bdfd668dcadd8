package llm

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
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
	return pause.Until(h.Get("Retry-After"), now)
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
		return pause.Until(found[1], now)
	}
	if found := aboutReset().FindStringSubmatch(said); found != nil {
		zone := strings.NewReplacer("UTC", "Z", "GMT", "Z").Replace(strings.ToUpper(found[4]))
		if zone == "" {
			return someday
		}
		return pause.Until(found[1]+"T"+found[2]+cmp.Or(found[3], ":00")+zone, now)
	}
	found := aboutDelay().FindStringSubmatch(strings.ToLower(said))
	switch {
	case found == nil:
		return 0
	case found[2] == "d":
		return 24 * pause.Until(found[1]+"h", now)
	}
	return pause.Until(found[1]+found[2], now)
}

// limitReset returns when a limit that is used up is reset, according to headers as those of
// OpenAI, Anthropic and OpenRouter, or 0: for each limit, one says what remains, and another one
// when that changes.
func limitReset(h http.Header, now time.Time) (after time.Duration) {
	for name := range h {
		if lower := strings.ToLower(name); h.Get(name) == "0" &&
			strings.Contains(lower, "ratelimit") {
			reset := h.Get(strings.Replace(lower, "remaining", "reset", 1))
			after = max(after, pause.Until(reset, now))
		}
	}
	return after
}

// attempts returns how often a request that fails in this way is sent. With a fallback, it is not
// worth while to wait long.
func (c *Client) attempts(f *failure) int {
	if f.means.Busy && !c.model.HasFallback {
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
