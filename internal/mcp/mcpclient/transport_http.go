package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// httpTransport is a connection over streamable HTTP. The MCP SDK's ends, with all its calls, for
// many failures that concern one request; here such a failure is the answer to that request, and
// lost is called if the connection must be made again.
type httpTransport struct {
	*inbox
	url      string
	client   *http.Client    // follows redirects in the origin of url
	ctx      context.Context // of all requests
	cancel   context.CancelCauseFunc
	open     context.Context // ends with Close, or before that with ctx
	close    context.CancelCauseFunc
	user     credentials
	lost     func(error) // reports that no more requests should be sent
	incoming chan mcpjsonrpc.Message
	reached  atomic.Bool // the server has answered a message of the handshake

	mu       sync.Mutex // held while open ends
	reading  sync.WaitGroup
	session  string // that the server has given the connection
	revision string // of MCP
}

// credentials authorize requests. The functions are nil if the user cannot sign in to the server.
type credentials struct {
	// token returns the value of the header for a request.
	token func(context.Context) (string, error)
	// authorize obtains the authorization that a response asks for.
	authorize func(context.Context, *http.Response) error
}

// newHTTPTransport returns a transport that calls lost when no more requests should be sent.
func newHTTPTransport(c Config, b *inbox, user credentials, lost func(error)) (
	*httpTransport, error) {
	if c.Transport == acpmcp.SSE {
		return nil, errEventStream
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("its url is not an absolute http or https URL")
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	t := &httpTransport{
		inbox: b, url: u.String(), client: &http.Client{Transport: &origin{base, u, c.Headers}},
		user: user, lost: lost, incoming: make(chan mcpjsonrpc.Message),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.open, t.close = context.WithCancelCause(t.ctx)
	return t, nil
}

// errEventStream says why there is no connection to a server of the type sse.
var errEventStream = errors.New("acp-agent does not connect to MCP servers of the type sse: " +
	"use the type http, for which most of them have another address")

// Connect implements [mcp.Transport].
func (t *httpTransport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

// SessionID implements [mcp.Connection].
func (t *httpTransport) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (t *httpTransport) Read(context.Context) (mcpjsonrpc.Message, error) {
	select {
	case m := <-t.incoming:
		return m, nil
	case <-t.open.Done():
		return nil, context.Cause(t.open)
	}
}

// deliver passes a message on, unless ctx ends. It ends the connection if the server reads no
// answers.
func (t *httpTransport) deliver(ctx context.Context, m mcpjsonrpc.Message) error {
	if err := t.admit(m, ctx.Done()); err != nil {
		t.cancel(err)
		return err
	}
	select {
	case t.incoming <- m:
		return nil
	case <-t.open.Done():
		return context.Cause(t.open)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Write implements [mcp.Connection]. A request is sent in the background, and always answered.
func (t *httpTransport) Write(ctx context.Context, m mcpjsonrpc.Message) error {
	out, err := newOutgoing(ctx, m)
	switch {
	case err != nil:
		return err
	case out.isCall():
		t.unanswered.Store(out.id, nil)
		t.spawn(func() { t.call(ctx, out) })
		return nil
	case out.id.IsValid():
		defer t.answered()
	case out.method == "notifications/initialized":
		t.listen()
	}
	ctx, end := t.bound(ctx)
	defer end()
	res, err := t.post(ctx, out)
	if err != nil {
		return &rejectedError{err}
	}
	return res.Body.Close()
}

// bound returns a context that ends with the connection too.
func (t *httpTransport) bound(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// rejectedError is an error of one message. The MCP SDK ends the connection for others.
type rejectedError struct{ error }

func (e *rejectedError) Unwrap() error { return e.error }

// Is reports whether target is the SDK's error for a message that a transport rejects.
func (e *rejectedError) Is(target error) bool {
	const rejected = -32005
	refusal, ok := target.(*mcpjsonrpc.Error)
	return ok && refusal.Code == rejected
}

// spawn runs f on a goroutine that wait waits for, unless the connection was closed.
func (t *httpTransport) spawn(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open.Err() == nil {
		t.reading.Go(f)
	}
}

// call sends a request and passes on the answer, or the error that there is instead.
func (t *httpTransport) call(ctx context.Context, out *outgoing) {
	defer t.unanswered.Delete(out.id)
	ctx, end := t.bound(ctx)
	defer end()
	res, err := t.post(ctx, out)
	if err == nil {
		s := &stream{transport: t, request: out}
		err = s.follow(ctx, res)
	}
	if err != nil {
		_ = t.deliver(ctx, &mcpjsonrpc.Response{ID: out.id, Error: err})
	}
}

// post sends a message and returns the response if it is one of MCP.
func (t *httpTransport) post(ctx context.Context, out *outgoing) (*http.Response, error) {
	for authorized, attempts := false, 1; ; attempts++ {
		res, err := t.send(ctx, out)
		if err != nil {
			return nil, err
		}
		if t.user.authorize != nil && isUnauthorized(res) {
			err = &authorizationError{errAskedAgain}
			if !authorized {
				authorized, err = true, t.user.authorize(ctx, res)
			}
			if err = errors.Join(err, res.Body.Close()); err != nil {
				return nil, err
			}
			continue
		}
		if err = t.checkResponse(res, out); err == nil {
			if out.isHandshake() {
				t.begin(res, out)
			}
			return res, nil
		}
		_ = res.Body.Close()
		later := transportErrorOf(err).later
		if later == 0 || later > maxBackoff || attempts == maxAttempts {
			return nil, err
		}
		t.log.Info("sending a request to an MCP server again later", "in", later, "error", err)
		if pause.For(ctx, later) != nil {
			return nil, err
		}
	}
}

// send sends a message. If the server of a connection cannot be reached, it tries again for a
// while, because nothing was sent: the server may be restarting.
func (t *httpTransport) send(ctx context.Context, out *outgoing) (*http.Response, error) {
	deadline := time.Now().Add(t.limits.SettleMax)
	for wait := t.limits.Backoff / 10; ; wait *= 2 {
		req, err := t.newRequest(ctx, http.MethodPost, out)
		if err != nil {
			return nil, err
		}
		res, err := t.client.Do(req)
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL, which may have secrets
		}
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil || t.ctx.Err() != nil:
			return nil, err
		case !isUnsent(err):
			t.client.CloseIdleConnections() // the server has probably closed these too
			return nil, newLostAnswer(err)
		case !t.reached.Load():
			return nil, newUnreachable(err)
		case time.Now().Add(wait).After(deadline):
			err = newUnreachable(err)
			t.lost(err)
			return nil, err
		}
		if err := pause.For(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// isUnsent reports whether err means that nothing of a request was sent.
func isUnsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// newRequest returns a request of the connection. out is the message that a POST sends.
func (t *httpTransport) newRequest(ctx context.Context, method string, out *outgoing) (
	*http.Request, error) {
	req, err := http.NewRequestWithContext(
		ctx, method, t.url, bytes.NewReader(out.encoded))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	session, revision := t.session, t.revision
	t.mu.Unlock()
	req.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	setHeader(req.Header, sessionHeader, session)
	out.setHeaders(req.Header, revision)
	if t.user.token != nil {
		token, err := t.user.token(ctx)
		if err != nil {
			return nil, err
		}
		setHeader(req.Header, "Authorization", token)
	}
	return req, nil
}

// setHeader sets a header unless its value is "".
func setHeader(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// origin sends requests to the origin of a server's URL with the configured headers, and to no
// other origin, even after a redirect.
type origin struct {
	*http.Transport
	url     *url.URL
	headers []Pair
}

// RoundTrip implements [http.RoundTripper].
func (o *origin) RoundTrip(req *http.Request) (*http.Response, error) {
	if u := req.URL; u.Scheme != o.url.Scheme || u.Host != o.url.Host {
		return nil, fmt.Errorf("it leads to another server, %s://%s, which must not get its "+
			"headers: configure that URL if you trust it", u.Scheme, u.Host)
	}
	from := new(netip.Addr)
	ctx := context.WithValue(req.Context(), addressKey{}, from)
	if proxy, err := o.Proxy(req); err == nil && proxy == nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(c httptrace.GotConnInfo) {
				if at, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
					*from = at.Addr()
				}
			},
		})
	}
	req = req.Clone(ctx)
	for _, h := range o.headers {
		req.Header.Set(h.Name, h.Value)
	}
	return o.Transport.RoundTrip(req)
}

// addressKey is the key of the address that answers a request with a context, which is not valid if
// a proxy connects to the server.
type addressKey struct{}

// begin notes what the response to a message of the handshake says of the connection.
func (t *httpTransport) begin(res *http.Response, out *outgoing) {
	t.reached.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session = cmp.Or(res.Header.Get(sessionHeader), t.session)
	t.revision = cmp.Or(out.revision, t.revision)
}

// setRevision sets the revision of MCP that the server has chosen.
func (t *httpTransport) setRevision(initialized json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revision = strictjson.FindText(initialized, "protocolVersion")
}

// Close implements [mcp.Connection]. It ends the server's session.
func (t *httpTransport) Close() error {
	t.mu.Lock()
	over, session := t.open.Err() != nil, t.session
	t.close(io.EOF)
	t.mu.Unlock()
	if over || session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, notifyTimeout)
	defer cancel()
	req, err := t.newRequest(ctx, http.MethodDelete, &outgoing{})
	if err != nil {
		return nil
	}
	if res, err := t.client.Do(req); err == nil {
		_ = res.Body.Close()
	}
	return nil
}

// explainDenial implements [link].
func (t *httpTransport) explainDenial(string) {}

// cause implements [link].
func (t *httpTransport) cause() error { return context.Cause(t.ctx) }

// stop implements [link].
func (t *httpTransport) stop() {
	time.AfterFunc(notifyTimeout, func() { t.cancel(errStopped) })
}

// end implements [link]. It closes idle connections.
func (t *httpTransport) end(err error) error {
	if cause := t.cause(); !errors.Is(cause, errStopped) {
		err = cmp.Or(cause, err)
	}
	t.cancel(errStopped)
	_ = t.Close()
	t.reading.Wait()
	t.client.CloseIdleConnections()
	return err
}
