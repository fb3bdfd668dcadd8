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
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

const (
	// attempts is how often a request is sent while it keeps failing, and patientAttempts if the
	// server only has too much to do. With the delays between these it waits a minute, because many
	// servers limit the requests of a minute.
	attempts, patientAttempts = 4, 8
	// longestDelay is the longest wait before a request is sent again.
	longestDelay = time.Minute
	// connectTimeout bounds each of the two steps of connecting: TCP and TLS.
	connectTimeout = 10 * time.Second
	// errorSize limits what is read of a response with an error, in bytes.
	errorSize = 64 << 10
)

// Client sends requests to one model. It is safe for concurrent use.
type Client struct {
	model   Model
	query   string // of BaseURL
	format  format
	learned learned
	window  window
	http    *http.Client
	// silence is how long a server may send no part of an answer. Local servers load a model before
	// they answer, and many servers send nothing while the model writes the arguments of a tool
	// call.
	silence time.Duration
	// longest limits an answer, and idle what a server may send without a part of an answer, in
	// bytes: maxAnswer and maxIdle, except in tests.
	longest, idle int
	// delay is the time before the second attempt. It doubles with each further one.
	delay time.Duration
}

// New returns a client for m. It connects when it is used. It panics if the API is unknown.
func New(m Model) *Client {
	m.API = cmp.Or(m.API, OpenAI)
	var query string
	m.BaseURL, query, _ = strings.Cut(m.BaseURL, "?")
	m.BaseURL = strings.TrimRight(m.BaseURL, "/")
	format, known := formats[m.API]
	if !known {
		panic(fmt.Sprintf("llm: unknown API %q", m.API))
	}
	transport := &http.Transport{ // of HTTP/1.1: HTTP/2 would repeat requests in silence
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // it delays what is streamed
	}
	// A redirect would send the conversation and the key to an address that the user has not
	// configured.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{
		model: format.complete(m), query: query, format: format,
		silence: cmp.Or(m.Silence, 5*time.Minute),
		longest: maxAnswer, idle: maxIdle,
		delay: 500 * time.Millisecond,
		http:  &http.Client{Transport: transport, CheckRedirect: stay},
	}
	c.learned.mostTools = format.maxTools
	c.learned.recognise(c.model)
	if m.ContextTokens == 0 && isLocal(m.BaseURL) {
		c.window.left = 2
	}
	return c
}

// Model returns the model with its defaults.
func (c *Client) Model() Model {
	m := c.model
	m.ContextTokens = cmp.Or(m.ContextTokens, int(c.window.asked.Load()), defaultWindow)
	if m.MaxTokens > m.ContextTokens/2 {
		m.MaxTokens = max(m.ContextTokens/4, 1)
	}
	return m
}

// KnowsWindow reports whether the model's ContextTokens are more than the default: they are
// configured, or its server has told them.
func (c *Client) KnowsWindow() bool {
	return c.model.ContextTokens > 0 || c.window.asked.Load() > 0
}

// Close closes the connections that are kept for further requests.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream sends the request and yields the events of the answer as they arrive. Each tool call is
// yielded once, when it is complete, and a [Finish] comes last. An error ends the stream. It is an
// [*Error], or the cause of ctx if that has ended. If a request fails for a temporary reason, it is
// sent again after a [Retry], even if a part of the answer has arrived. Breaking out of the loop
// ends the request.
func (c *Client) Stream(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r.Messages = c.model.returned(c.model.Readable(r.Messages))
		for attempt := 0; ; attempt++ {
			stopped := false
			failed := c.try(ctx, r, func(e Event) bool {
				stopped = !yield(e, nil)
				return !stopped
			})
			switch {
			case stopped || failed == nil:
				return
			case ctx.Err() != nil:
				yield(nil, context.Cause(ctx))
				return
			case !failed.retry || attempt >= c.attempts(failed)-1:
				yield(nil, failed.Error)
				return
			}
			delay := c.delay << attempt
			wait := cmp.Or(failed.after, delay) + rand.N(delay/4+1)
			if !yield(Retry{Err: failed.Error, After: wait}, nil) {
				return
			}
			if err := pause.For(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// try sends a request once. If the server rejects it and says what to send instead, try sends that.
func (c *Client) try(ctx context.Context, r Request, yield func(Event) bool) *failure {
	var sent []byte
	var failed *failure
	for all := r.Tools; ; {
		r.Tools, _ = c.Offer(all)
		model, variant := c.Model(), c.learned.now()
		body := c.format.encode(model, r, variant)
		if bytes.Equal(body, sent) {
			return failed
		}
		read := func(answer io.Reader) error { return c.read(answer, variant, yield) }
		failed = c.do(ctx, c.model.BaseURL+c.format.answers, body, read)
		if failed == nil || failed.rejection == nil {
			return failed
		}
		c.learned.learn(failed.rejection, r, variant.limit(model, r))
		sent = body
	}
}

// List returns the names of the models that the server offers.
func (c *Client) List(ctx context.Context) ([]string, error) {
	var names []string
	address := c.model.BaseURL + c.format.models
	failed := c.do(ctx, address, nil, func(body io.Reader) error {
		var list struct{ Data, Models []struct{ ID, Name string } }
		raw, err := sse.NewReader(body, maxEvent).Rest()
		if err != nil {
			return lost(err)
		}
		if failed := reported(sse.Event{Data: raw}); failed != nil {
			return failed
		}
		into := any(&list)
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) { // as Together's
			into = &list.Data
		}
		if err := json.Unmarshal(raw, into); err != nil {
			if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("<")) {
				return webPage(raw)
			}
			return malformed(err)
		}
		for _, m := range slices.Concat(list.Data, list.Models) {
			names = append(names, cmp.Or(m.ID, m.Name))
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
	means wording // the zero value if no row fits
	retry bool
	after time.Duration // see retryAfter
	// rejection is the response, if the server does not accept the request.
	rejection []byte
	begun     bool // a part of the answer has arrived
}

// do sends a request once, or twice if the key is replaced, and lets use read the response. body is
// nil for a GET.
func (c *Client) do(
	ctx context.Context, address string, body []byte, use func(io.Reader) error,
) *failure {
	e, missing := exchange{address: address, body: body}, "there is no key for"
	var err error
	if e.key, err = c.key(ctx, ""); err == nil {
		missing = "a header is missing for"
		e.headers, err = c.headers()
	}
	if err != nil {
		message := missing + " the model " + c.model.Name + ": " + err.Error()
		return &failure{Error: &Error{Kind: KeyRejected, Message: scrubbed(message, []string{e.key})}}
	}
	f := c.attempt(ctx, e, use)
	if f == nil || e.key == "" || f.begun || f.Kind != KeyRejected && !rejectsKey(f.Status) {
		return f
	}
	other, err := c.key(ctx, e.key)
	if err != nil || other == e.key {
		return f
	}
	e.key = other
	return c.attempt(ctx, e, use)
}

// exchange is an HTTP request, as far as it differs from others.
type exchange struct {
	address, key string
	headers      map[string]string
	body         []byte // nil for a GET
}

// attempt sends a request once, lets use read the response, and explains a failure to the user.
func (c *Client) attempt(ctx context.Context, e exchange, use func(io.Reader) error) *failure {
	f := c.once(ctx, e, use)
	if f != nil {
		f.Error = c.explain(f, slices.AppendSeq([]string{e.key}, maps.Values(e.headers)))
		f.bound()
	}
	return f
}

// once sends a request once, and lets use read the response.
func (c *Client) once(ctx context.Context, e exchange, use func(io.Reader) error) *failure {
	response, err := c.send(ctx, e)
	if err != nil {
		return &failure{Error: c.unreachable(err), retry: isTemporary(err)}
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return rejected(response)
	}
	watched := response.Body.(*watchedBody)
	if compression := response.Header.Get("Content-Encoding"); compression != "" {
		err = &Error{Kind: Malformed, Message: "the server sent a compressed answer (" +
			compression +
			"), which it was not asked for; check the server and what is in front of it"}
	} else {
		err = use(watched)
	}
	if err == nil {
		watched.drain()
		return nil
	}
	said, _ := errors.AsType[reportedError](err)
	if why, ok := errors.AsType[*Error](err); ok {
		said.failed = why
	} else {
		said.failed = malformed(err)
	}
	f := failed(said, nil)
	f.retry, f.begun = f.retry || f.Error == errCut || f.Error == errEmpty, watched.begun
	return f
}

// key returns the key for the server, "" if it needs none.
func (c *Client) key(ctx context.Context, rejected string) (string, error) {
	if c.model.Key == nil {
		return "", nil
	}
	key, err := c.model.Key(ctx, rejected)
	return strings.TrimSpace(key), err
}

// headers returns the headers that are configured.
func (c *Client) headers() (map[string]string, error) {
	if c.model.Headers == nil {
		return nil, nil
	}
	return c.model.Headers()
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
		idle: c.idle, patience: c.silence, room: c.idle,
	}
	return response, nil
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
	idle     int
	room     int  // what is left of idle
	begun    bool // a piece of an answer has arrived
}

// progress records that a piece of an answer has arrived.
func (b *watchedBody) progress() { b.patience, b.room, b.begun = b.silence, b.idle, true }

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

// rejected returns the failure of a response with an error status.
func rejected(response *http.Response) *failure {
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorSize))
	if compression := response.Header.Get("Content-Encoding"); compression != "" {
		body = []byte("compressed (" + compression + ")")
	}
	f := failed(describe(response.StatusCode, body), response.Header)
	if to, err := response.Location(); err == nil && response.StatusCode < 400 {
		f.Message = "the server redirects to " + address(to) +
			", and redirects are not followed; set the model's baseURL to where the API is"
		f.Kind = Misconfigured
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		f.rejection = body
	case http.StatusInternalServerError:
		if f.Kind == Rejected {
			f.rejection = body
		}
	}
	return f
}

// failed returns the failure for an error that the server reports in a response, in a stream or in
// place of an answer, with these headers.
func failed(r reportedError, h http.Header) *failure {
	now := time.Now()
	return &failure{Error: r.failed, means: r.means,
		after: cmp.Or(retryAfter(h, now), askedDelay(r.said, now), limitReset(h, now)),
		retry: (r.failed.Kind == Overloaded || r.failed.Kind == Slipped) &&
			h.Get("X-Should-Retry") != "false"}
}

// unreachable returns the error for a request that was not answered.
func (c *Client) unreachable(err error) *Error {
	if err == errSilent {
		return errSilent
	}
	where := c.where() + c.through()
	message := "cannot reach the model's server at " + where + ": " + reason(err)
	return &Error{Kind: Unreachable, Message: message}
}

// through returns a phrase that names the proxy through which the requests go, if there is one.
func (c *Client) through() string {
	u, err := url.Parse(c.model.BaseURL)
	if err != nil {
		return ""
	}
	proxy, err := c.http.Transport.(*http.Transport).Proxy(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	variable := strings.ToUpper(u.Scheme) + "_PROXY"
	return fmt.Sprintf(" through the proxy %s (%s)", address(proxy), variable)
}

// where returns the address of the server.
func (c *Client) where() string {
	u, err := url.Parse(c.model.BaseURL)
	if err != nil || u.Host == "" {
		return "its baseURL, which is not an address that begins with http:// or https://"
	}
	return address(u)
}
