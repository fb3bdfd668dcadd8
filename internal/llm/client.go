package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// attempts is how often a request is sent if it fails before anything arrived.
	attempts = 4
	// longestDelay is the longest wait before a request is sent again.
	longestDelay = time.Minute
	// connectTimeout bounds each of the two parts of connecting: TCP, and TLS.
	connectTimeout = 10 * time.Second
	// errorSize is how much is read of a response with an error.
	errorSize = 64 << 10
)

// Client sends requests to one model. It is safe for concurrent use.
type Client struct {
	model  Model
	format format
	http   *http.Client
	// silence is how long a server may send nothing of an answer. Local servers load a model before
	// they answer, and many servers send nothing while the model writes the arguments of a tool
	// call.
	silence time.Duration
	// delay is the time before the second attempt. It doubles with each further one.
	delay time.Duration
}

// New returns a client for m. It connects when it is used. It panics if it does not know the API.
func New(m Model) *Client {
	m.API = cmp.Or(m.API, OpenAI)
	m.BaseURL = strings.TrimRight(m.BaseURL, "/")
	m.ContextTokens = cmp.Or(m.ContextTokens, 128_000)
	format := newFormat(m.API)
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true, // it delays what is streamed
	}
	// A redirect would send the conversation and the key to an address that the user has not
	// configured.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		model: format.complete(m), format: format, silence: 5 * time.Minute,
		delay: 500 * time.Millisecond,
		http:  &http.Client{Transport: transport, CheckRedirect: stay},
	}
}

// Model returns the model with its defaults.
func (c *Client) Model() Model { return c.model }

// Close closes the connections that are kept for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream sends the request and yields what arrives, in order: complete tool calls, each once, and
// at the end a [Finish]. An error ends it, and is an [*Error] unless ctx has ended, which returns
// its cause. A request that failed before anything arrived is sent again after a [Retry]; one that
// failed later is not. Breaking out of the loop ends the request.
func (c *Client) Stream(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if c.model.TextOnly {
			r.Messages = WithoutImages(r.Messages)
		}
		r.Messages = c.model.returned(r.Messages)
		for attempt := 0; ; attempt++ {
			arrived, stopped := false, false
			failed := c.try(ctx, r, func(e Event) bool {
				arrived, stopped = true, !yield(e, nil)
				return !stopped
			})
			switch {
			case stopped || failed == nil:
				return
			case ctx.Err() != nil:
				yield(nil, context.Cause(ctx))
				return
			case arrived || !failed.retry || attempt == attempts-1:
				yield(nil, failed.Error)
				return
			}
			delay := c.delay << attempt
			wait := cmp.Or(failed.after, delay) + rand.N(delay/4+1)
			if !yield(Retry{Err: failed.Error, After: wait}, nil) {
				return
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// try sends a request once, and again if the server rejects it and has said what to send instead.
func (c *Client) try(ctx context.Context, r Request, yield func(Event) bool) *failure {
	path, _ := c.format.paths()
	var sent []byte
	var failed *failure
	for {
		body := c.format.encode(c.model, r)
		if bytes.Equal(body, sent) {
			return failed
		}
		read := func(answer io.Reader) error { return c.read(answer, yield) }
		failed = c.do(ctx, http.MethodPost, path, body, read)
		if failed == nil || failed.rejection == nil {
			return failed
		}
		c.format.learn(failed.rejection)
		sent = body
	}
}

// List returns the names of the models that the server offers.
func (c *Client) List(ctx context.Context) ([]string, error) {
	_, path := c.format.paths()
	var names []string
	failed := c.do(ctx, http.MethodGet, path, nil, func(body io.Reader) error {
		var list struct{ Data []struct{ ID string } }
		raw, err := (&sseReader{from: body}).rest()
		if err != nil {
			return lost(err)
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return malformed(err)
		}
		for _, m := range list.Data {
			names = append(names, m.ID)
		}
		return nil
	})
	switch {
	case failed == nil:
		return names, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, failed.Error
	}
}

// failure is the result of an attempt that failed.
type failure struct {
	*Error
	retry bool
	after time.Duration // see retryAfter
	// rejection is the response, if the server does not accept the request.
	rejection []byte
}

// do sends a request once, or twice if the key is replaced, and has use read the response.
func (c *Client) do(
	ctx context.Context, method, path string, body []byte, use func(io.Reader) error,
) *failure {
	key, err := c.key(ctx, "")
	if err != nil {
		message := "there is no key for the model " + c.model.Name + ": " + err.Error()
		return &failure{Error: c.explain(&Error{Kind: KeyRejected, Message: message}, key)}
	}
	response, err := c.send(ctx, method, path, key, body)
	if err == nil && rejectsKey(response.StatusCode) && key != "" {
		if other, failed := c.key(ctx, key); failed == nil && other != key {
			response.Body.Close()
			key = other
			response, err = c.send(ctx, method, path, key, body)
		}
	}
	if err != nil {
		return &failure{Error: c.explain(c.unreachable(err), key), retry: isTemporary(err)}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return c.rejected(response, key)
	}
	watched := response.Body.(*watchedBody)
	if err := use(watched); err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = malformed(err)
		}
		return &failure{Error: c.explain(e, key), retry: e.Kind == Overloaded || e == errCut}
	}
	watched.drain()
	return nil
}

// key returns the key for the server, "" if it needs none.
func (c *Client) key(ctx context.Context, rejected string) (string, error) {
	if c.model.Key == nil {
		return "", nil
	}
	key, err := c.model.Key(ctx, rejected)
	return strings.TrimSpace(key), err
}

// send sends a request once. The body of the response is a [*watchedBody].
func (c *Client) send(
	ctx context.Context, method, path, key string, body []byte,
) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	address := c.model.BaseURL + path
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	request.Header = c.format.header(key)
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("User-Agent", "acp-agent")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
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
	watched := &watchedBody{
		ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, silence: c.silence,
	}
	watched.progress()
	response.Body = watched
	return response, nil
}

// maxIdle is how much a server may send without anything of an answer in it, in bytes: an event of
// the largest size, and what comes between events.
const maxIdle = 2 * maxEvent

// watchedBody is the body of a response. It fails with errSilent if no progress is made for too
// long while somebody reads, and with errIdle if too much arrives meanwhile.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc // ends the request
	timer   *time.Timer             // calls cancel with errSilent
	silence time.Duration

	patience time.Duration // what is left of silence
	room     int           // what is left of maxIdle
}

// progress notes that a piece of an answer has arrived.
func (b *watchedBody) progress() { b.patience, b.room = b.silence, maxIdle }

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

// drain reads what little comes after the last event, so that the connection can be used again.
func (b *watchedBody) drain() {
	defer time.AfterFunc(100*time.Millisecond, func() { b.cancel(nil) }).Stop()
	_, _ = io.CopyN(io.Discard, b.ReadCloser, 4<<10)
}

// rejected returns the failure of a response with an error status.
func (c *Client) rejected(response *http.Response, key string) *failure {
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorSize))
	e := describe(response.StatusCode, body)
	if to, err := response.Location(); err == nil && response.StatusCode < 400 {
		e.Message = "the server redirects to " + address(to) +
			"; set the model's baseURL to where the API is"
	}
	after := retryAfter(response.Header, time.Now())
	retry := e.Kind == Overloaded && response.Header.Get("X-Should-Retry") != "false"
	f := &failure{Error: c.explain(e, key), after: after, retry: retry}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		f.rejection = body
	}
	if f.retry && after > longestDelay {
		f.retry = false
		f.Message += fmt.Sprintf("; try again in %s", after.Round(time.Second))
	}
	return f
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

// unreachable returns the error for a request that was not answered.
func (c *Client) unreachable(err error) *Error {
	if err == errSilent {
		return errSilent
	}
	message := "cannot reach the model's server at " + c.where() + ": " + reason(err)
	return &Error{Kind: Unreachable, Message: message}
}

// where returns the address of the server.
func (c *Client) where() string {
	u, err := url.Parse(c.model.BaseURL)
	if err != nil || u.Host == "" {
		return "its baseURL, which is not an address that begins with http:// or https://"
	}
	return address(u)
}
