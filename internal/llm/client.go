package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
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
	questions := 0
	if m.ContextTokens == 0 && m.isLocal() {
		questions = 2
	}
	m = format.complete(m)
	return &Client{
		model: m, query: query, format: format,
		learned: learned{variant: recognised(m)},
		window:  window{left: questions},
		silence: cmp.Or(m.Silence, 5*time.Minute),
		delay:   500 * time.Millisecond,
		http:    &http.Client{Transport: transport, CheckRedirect: stay},
	}
}

// Model returns the model with its defaults.
func (c *Client) Model() Model {
	m := c.model
	m.ContextTokens = cmp.Or(m.ContextTokens, int(c.window.tokens.Load()), defaultWindow)
	if m.MaxTokens > m.ContextTokens/2 {
		m.MaxTokens = max(m.ContextTokens/4, 1)
	}
	return m
}

// KnowsWindow reports whether the model's ContextTokens are more than the default: they are
// configured, or its server has told them.
func (c *Client) KnowsWindow() bool {
	return c.model.ContextTokens > 0 || c.window.tokens.Load() > 0
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
			failed := c.adapted(ctx, r, func(e Event) bool {
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
				yield(nil, failed.why)
				return
			}
			delay := c.delay << attempt
			wait := cmp.Or(failed.after, delay) + rand.N(delay/4+1)
			if !yield(Retry{Err: failed.why, After: wait}, nil) {
				return
			}
			if err := pause.For(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// adapted sends a request as the server wants it: if it rejects the request and says what to send
// instead, adapted sends that.
func (c *Client) adapted(ctx context.Context, r Request, yield func(Event) bool) *failure {
	var sent []byte
	var failed *failure
	for all := r.Tools; ; {
		r.Tools, _ = c.Offer(all)
		model, variant := c.Model(), c.learned.now()
		body := c.format.encode(model, r, variant)
		if bytes.Equal(body, sent) {
			return failed
		}
		read := func(answer *watchedBody) *failure { return c.read(answer, variant, yield) }
		failed = c.authorized(ctx, c.model.BaseURL+c.format.answers, body, read)
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
	failed := c.authorized(ctx, address, nil, func(body *watchedBody) *failure {
		var list struct{ Data, Models []struct{ ID, Name string } }
		r, into := sse.NewReader(body, maxEvent), any(&list)
		if first, _ := r.Peek(); first == '[' { // as Together's
			into = &list.Data
		}
		raw, failed := whole(r)
		if failed != nil {
			return failed
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return malformed(err.Error())
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
		return nil, failed.why
	}
}

// authorized sends a request with the key and the configured headers, and lets use read the
// response. If the server rejects the key and there is another now, it is sent again with that.
// body is nil for a GET.
func (c *Client) authorized(
	ctx context.Context, address string, body []byte, use func(*watchedBody) *failure,
) *failure {
	e, missing := exchange{address: address, body: body, use: use}, "there is no key for"
	var err error
	if e.key, err = c.key(ctx, ""); err == nil && c.model.Headers != nil {
		missing = "a header is missing for"
		e.headers, err = c.model.Headers()
	}
	if err != nil {
		message := missing + " the model " + c.model.Name + ": " + err.Error()
		return &failure{why: &Error{Kind: KeyRejected,
			Message: scrubbed(message, []string{e.key})}}
	}
	f := c.exchange(ctx, e)
	if f == nil || e.key == "" || f.begun || f.why.Kind != KeyRejected &&
		f.why.Status != http.StatusUnauthorized && f.why.Status != http.StatusForbidden {
		return f
	}
	other, err := c.key(ctx, e.key)
	if err != nil || other == e.key {
		return f
	}
	e.key = other
	return c.exchange(ctx, e)
}

// key returns the key for the server, "" if it needs none.
func (c *Client) key(ctx context.Context, rejected string) (string, error) {
	if c.model.Key == nil {
		return "", nil
	}
	key, err := c.model.Key(ctx, rejected)
	return strings.TrimSpace(key), err
}

// unreachable returns the error for a request that was not answered.
func (c *Client) unreachable(err error) *Error {
	where := c.where() + c.through()
	message := "cannot reach the model's server at " + where + ": " + reason(err)
	return &Error{Kind: Unreachable, Message: message}
}

// through returns a phrase that names the proxy through which the requests go, if there is one.
func (c *Client) through() string {
	u := c.model.address()
	proxy, err := c.http.Transport.(*http.Transport).Proxy(&http.Request{URL: u})
	if err != nil || proxy == nil {
		return ""
	}
	variable := strings.ToUpper(u.Scheme) + "_PROXY"
	return fmt.Sprintf(" through the proxy %s (%s)", address(proxy), variable)
}

// where returns the address of the server.
func (c *Client) where() string {
	u := c.model.address()
	if u.Host == "" {
		return "its baseURL, which is not an address that begins with http:// or https://"
	}
	return address(u)
}
