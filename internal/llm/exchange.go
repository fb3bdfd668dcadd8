package llm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// exchange is a request and what reads its response.
type exchange struct {
	address, key string
	headers      map[string]string
	body         []byte // nil for a GET
	use          func(*watchedBody) *failure
}

// failure is the result of an exchange that failed.
type failure struct {
	why   *Error
	means wording // the zero value if no row fits
	retry bool
	after time.Duration // see retryAfter
	// rejection is the response, if the server does not accept the request.
	rejection []byte
	begun     bool // a part of the answer has arrived
}

// exchange sends a request once, has its response read, and explains a failure to the user.
func (c *Client) exchange(ctx context.Context, e exchange) *failure {
	response, err := c.send(ctx, e)
	var f *failure
	switch {
	case err == nil:
		f = received(response, e.use)
	case err == errSilent:
		f = &failure{why: errSilent}
	default:
		f = &failure{why: c.unreachable(err), retry: isTemporary(err)}
	}
	if f != nil {
		f.why = c.explain(f, slices.AppendSeq([]string{e.key}, maps.Values(e.headers)))
		f.bound()
	}
	return f
}

// send sends a request once. The body of the response is a [*watchedBody].
func (c *Client) send(ctx context.Context, e exchange) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	address := e.address
	if c.query != "" {
		joint := "?"
		if strings.Contains(address, "?") {
			joint = "&"
		}
		address += joint + c.query
	}
	method, body := http.MethodGet, io.Reader(nil)
	if e.body != nil {
		method, body = http.MethodPost, bytes.NewReader(e.body)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if c.format.version != "" {
		request.Header.Set("Anthropic-Version", c.format.version)
	}
	if e.key != "" {
		request.Header.Set(c.format.keyHeader, c.format.keyPrefix+e.key)
	}
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("User-Agent", "acp-agent")
	if e.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range e.headers {
		request.Header.Set(name, value)
	}
	timer := time.AfterFunc(c.silence, func() { cancel(errSilent) })
	response, err := c.http.Do(request)
	timer.Stop()
	if err != nil {
		if context.Cause(ctx) == errSilent {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	response.Body = &watchedBody{
		ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, silence: c.silence,
		patience: c.silence, room: maxIdle,
	}
	return response, nil
}

// received lets use read a response of [Client.send], and closes it, also if use panics.
func received(response *http.Response, use func(*watchedBody) *failure) *failure {
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return rejected(response)
	}
	if compression := response.Header.Get("Content-Encoding"); compression != "" {
		message := "the server sent a compressed answer (" + compression +
			"), which it was not asked for; check the server and what is in front of it"
		return &failure{why: &Error{Kind: Malformed, Message: message}}
	}
	body := response.Body.(*watchedBody)
	f := use(body)
	if f == nil {
		body.drain()
		return nil
	}
	f.begun = body.begun
	return f
}

// rejected returns the failure of a response with an error status.
func rejected(response *http.Response) *failure {
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorSize))
	if compression := response.Header.Get("Content-Encoding"); compression != "" {
		body = []byte("compressed (" + compression + ")")
	}
	f, h, now := describe(response.StatusCode, body), response.Header, time.Now()
	f.after = cmp.Or(retryAfter(h, now), f.after, limitReset(h, now))
	f.retry = f.retry && h.Get("X-Should-Retry") != "false"
	if to, err := response.Location(); err == nil && response.StatusCode < 400 {
		f.why.Message = "the server redirects to " + address(to) +
			", and redirects are not followed; set the model's baseURL to where the API is"
		f.why.Kind = Misconfigured
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		f.rejection = body
	case http.StatusInternalServerError:
		if f.why.Kind == Rejected {
			f.rejection = body
		}
	}
	return f
}

// maxIdle limits what a server may send without a part of an answer, in bytes: an event of the
// maximum size, and the bytes between events.
const maxIdle = 2 * maxEvent

// watchedBody is the body of a response. While somebody reads, it fails with errSilent if there is
// no progress for too long, and with errIdle if too many bytes arrive without progress.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc // ends the request
	timer   *time.Timer             // calls cancel with errSilent
	silence time.Duration

	patience time.Duration // what is left of silence
	room     int           // what is left of maxIdle
	begun    bool          // a piece of an answer has arrived
}

// progress records that a piece of an answer has arrived.
func (b *watchedBody) progress() { b.patience, b.room, b.begun = b.silence, maxIdle, true }

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.room <= 0 {
		return 0, errIdle
	}
	begin := time.Now()
	b.timer.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	b.patience -= time.Since(begin)
	b.room -= n
	if err != nil && err != io.EOF && context.Cause(b.ctx) == errSilent {
		err = errSilent
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

// drain reads the few bytes after the last event, so that the connection can be used again.
func (b *watchedBody) drain() {
	defer time.AfterFunc(100*time.Millisecond, func() { b.cancel(nil) }).Stop()
	_, _ = io.CopyN(io.Discard, b.ReadCloser, 4<<10)
}

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
