package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// httpTransport is the HTTP client of a connection. It sends the configured headers only to the
// server's own origin, even after a redirect. The MCP SDK ends a connection, with all its calls, for
// many failures that concern one request; so the SDK is shown none of them. It reads a stream of
// readable messages, see [stream], and lost is called if the connection must be made again.
type httpTransport struct {
	origin  *url.URL
	headers []Pair
	base    *http.Transport
	get     *http.Client    // follows redirects like the SDK's client
	ctx     context.Context // ends with the connection
	fail    func(error)     // ends the connection
	lost    func(error)     // reports that no more requests should be sent
	log     *slog.Logger
	pending *pendingRequests
	open    *openRequests
	limits  limits

	connected  atomic.Bool       // the server has answered initialize
	authorizer auth.OAuthHandler // handles 401 and 403, nil if the user cannot sign in
}

// newHTTPTransport returns a transport that works until ctx ends. The caller sets fail and lost.
func newHTTPTransport(ctx context.Context, c Config, l limits, log *slog.Logger) (
	*httpTransport, error) {
	if c.Transport == acpmcp.SSE {
		return nil, errEventStream
	}
	origin, err := url.Parse(c.URL)
	if err != nil || origin.Host == "" || (origin.Scheme != "http" && origin.Scheme != "https") {
		return nil, errors.New("its url is not an absolute http or https URL")
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{}
	}
	t := &httpTransport{
		origin: origin, headers: c.Headers, base: base.Clone(), log: log,
		ctx: ctx, pending: newPendingRequests(l), open: newOpenRequests(), limits: l,
	}
	t.get = &http.Client{Transport: roundTripper(t.do), CheckRedirect: t.checkRedirect}
	return t, nil
}

// errEventStream says why there is no connection to a server of the type sse.
var errEventStream = errors.New("acp-agent does not connect to MCP servers of the type sse: " +
	"use the type http, for which most of them have another address")

// roundTripper is a function that implements [http.RoundTripper].
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// forSDK returns the MCP SDK's transport for HTTP, using t.
func (t *httpTransport) forSDK() mcp.Transport {
	client := &http.Client{Transport: t, CheckRedirect: t.checkRedirect}
	return &mcp.StreamableClientTransport{
		Endpoint: t.origin.String(), HTTPClient: client, MaxEventSize: -1, MaxRetries: -1,
		OAuthHandler: t.authorizer,
	}
}

func (t *httpTransport) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	return t.checkOrigin(req.URL)
}

func (t *httpTransport) checkOrigin(u *url.URL) error {
	if u.Scheme != t.origin.Scheme || u.Host != t.origin.Host {
		return fmt.Errorf("it leads to another server, %s://%s, which must not get its headers: "+
			"configure that URL if you trust it", u.Scheme, u.Host)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (t *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req.Method == http.MethodPost:
		return t.post(req)
	case req.Method == http.MethodGet:
		return t.listen(req)
	default:
		return t.do(req)
	}
}

// do sends a request with the configured headers. It and its response end with the connection.
func (t *httpTransport) do(req *http.Request) (*http.Response, error) {
	if err := t.checkOrigin(req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	body := &responseBody{end: func() {
		stop()
		cancel(nil)
	}}
	req = req.Clone(t.traceAddress(ctx, req, &body.from))
	for _, h := range t.headers {
		req.Header.Set(h.Name, h.Value)
	}
	res, err := t.base.RoundTrip(req)
	if err != nil {
		body.end()
		return nil, err
	}
	body.ReadCloser, res.Body = res.Body, body
	return res, nil
}

// post sends a message of the SDK.
func (t *httpTransport) post(req *http.Request) (*http.Response, error) {
	m := readOutgoing(req)
	switch {
	case m.isAnswer():
		t.pending.add(m.id)
		defer t.pending.remove(m.id)
	case m.isCall():
		t.open.add(m.id)
	}
	res, err := t.send(req)
	if err == nil {
		res, err = t.receive(req, res, m)
	}
	if err != nil && m.isCall() {
		t.open.remove(m.id)
		outcomeIn(req.Context()).set(err)
	}
	return res, err
}

// send sends a message. If the server of a connection cannot be reached, it tries again for a
// while, because nothing was sent: the server may be restarting.
func (t *httpTransport) send(req *http.Request) (*http.Response, error) {
	deadline := time.Now().Add(t.limits.SettleMax)
	for wait := t.limits.Backoff / 10; ; wait *= 2 {
		res, err := t.do(req)
		switch {
		case err == nil:
			return res, nil
		case req.Context().Err() != nil || t.ctx.Err() != nil:
			return nil, err
		case !isUnsent(err):
			return nil, &lostAnswerError{err}
		case !t.connected.Load():
			return nil, &unreachableError{err}
		case time.Now().Add(wait).After(deadline):
			err = &unreachableError{err}
			t.lost(err)
			return nil, err
		}
		if err := pause.For(req.Context(), wait); err != nil {
			return nil, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// isUnsent reports whether err means that nothing of a request was sent.
func isUnsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// again returns a copy of a request to send once more.
func again(req *http.Request) (*http.Request, error) {
	copied := req.Clone(req.Context())
	if req.GetBody == nil {
		return copied, nil
	}
	body, err := req.GetBody()
	copied.Body = body
	return copied, err
}

// receive turns the response to a message into one that the SDK can read.
func (t *httpTransport) receive(req *http.Request, res *http.Response, m outgoing) (
	*http.Response, error) {
	refused := res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
	if t.authorizer != nil && refused {
		return res, nil
	}
	err := t.checkSession(req, res, m)
	sent := cmp.Or(res.Request, req) // with the configured headers
	if err == nil {
		err = t.checkStatus(sent, res)
	}
	if err == nil && !m.isCall() && res.StatusCode >= http.StatusBadRequest {
		err = t.refusal(sent, res)
	}
	switch {
	case err != nil:
		return nil, errors.Join(err, res.Body.Close())
	case !m.isCall(), res.StatusCode/100 == 3:
		return res, nil
	}
	if !m.isHandshake() {
		res.Header.Del(sessionHeader) // another id than before would end the connection
	}
	s := t.newStream(req)
	s.id, s.outcome = m.id, outcomeIn(req.Context())
	return s.response(res), nil
}

// traceAddress returns a context that sets from to the address of the server that answers req,
// unless a proxy connects to the server.
func (t *httpTransport) traceAddress(
	ctx context.Context, req *http.Request, from *netip.Addr,
) context.Context {
	if t.base.Proxy != nil {
		if proxy, err := t.base.Proxy(req); err != nil || proxy != nil {
			return ctx
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			if at, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
				*from = at.Addr()
			}
		},
	})
}

// sessionHeader names the session that a server has given the connection.
const sessionHeader = "Mcp-Session-Id"

// outgoing is what the transport needs to know of a message that it sends.
type outgoing struct {
	id     mcpjsonrpc.ID // not valid for a notification
	method string        // "" for an answer to the server
}

func (m outgoing) isCall() bool   { return m.method != "" && m.id.IsValid() }
func (m outgoing) isAnswer() bool { return m.method == "" && m.id.IsValid() }

// isHandshake reports whether the message begins the connection.
func (m outgoing) isHandshake() bool {
	return m.method == "initialize" || m.method == "server/discover" ||
		m.method == "notifications/initialized"
}

// readOutgoing returns what req sends.
func readOutgoing(req *http.Request) (m outgoing) {
	raw, err := bodyOf(req)
	if err != nil {
		return m
	}
	switch message, _ := mcpjsonrpc.DecodeMessage(raw); message := message.(type) {
	case *mcpjsonrpc.Request:
		return outgoing{message.ID, message.Method}
	case *mcpjsonrpc.Response:
		return outgoing{id: message.ID}
	}
	return m
}

// bodyOf returns a copy of a request's body.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.GetBody == nil {
		return nil, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// waitPending waits until the server may send more requests. It ends the connection if the server
// reads no answers.
func (t *httpTransport) waitPending(done <-chan struct{}) error {
	err := t.pending.wait(done)
	if err != nil {
		t.fail(err)
	}
	return err
}

// close closes idle connections.
func (t *httpTransport) close() { t.base.CloseIdleConnections() }

// responseBody is the body of a response. It ends the response's context when it is closed.
type responseBody struct {
	io.ReadCloser
	from netip.Addr // the server's address, not valid if a proxy connected to it
	end  func()
}

// Close implements [io.Closer].
func (b *responseBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
