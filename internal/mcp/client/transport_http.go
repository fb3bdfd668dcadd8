package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// httpTransport is the HTTP client of a connection. It sends the configured headers only to the
// server's own origin, even after a redirect.
type httpTransport struct {
	kind    acpmcp.Transport
	origin  *url.URL
	headers []Pair
	base    *http.Transport
	ctx     context.Context // ends with the connection
	fail    context.CancelCauseFunc
	pending *pendingRequests
	limits  limits

	authorizer auth.OAuthHandler // handles 401 and 403, nil if the user cannot sign in
}

// newHTTPTransport returns a transport that works until ctx ends. fail ends ctx.
func newHTTPTransport(ctx context.Context, fail context.CancelCauseFunc, c Config, l limits) (
	*httpTransport, error) {
	origin, err := url.Parse(c.URL)
	if err != nil || origin.Host == "" || (origin.Scheme != "http" && origin.Scheme != "https") {
		return nil, errors.New("its url is not an absolute http or https URL")
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{}
	}
	return &httpTransport{
		kind: c.Transport, origin: origin, headers: c.Headers, base: base.Clone(),
		ctx: ctx, fail: fail, pending: newPendingRequests(l), limits: l,
	}, nil
}

// forSDK returns the MCP SDK's transport for HTTP or SSE, using t.
func (t *httpTransport) forSDK() mcp.Transport {
	check := func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("too many redirects")
		}
		return t.checkOrigin(req.URL)
	}
	client := &http.Client{Transport: t, CheckRedirect: check}
	if t.kind == acpmcp.SSE {
		return &mcp.SSEClientTransport{
			Endpoint: t.origin.String(), HTTPClient: client, MaxEventSize: t.limits.MaxMessage,
		}
	}
	return &mcp.StreamableClientTransport{
		Endpoint: t.origin.String(), HTTPClient: client, MaxEventSize: t.limits.MaxMessage,
		MaxRetries: 2, OAuthHandler: t.authorizer,
	}
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
	if err := t.checkOrigin(req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	end := func() {
		stop()
		cancel(nil)
	}
	var from netip.Addr
	req = req.Clone(t.traceAddress(ctx, req, &from))
	for _, h := range t.headers {
		req.Header.Set(h.Name, h.Value)
	}
	if id, ok := answeredRequest(req); ok {
		t.pending.add(id)
		defer t.pending.remove(id)
	}
	res, err := t.base.RoundTrip(req)
	if err != nil {
		end()
		return nil, err
	}
	refused := res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
	if t.authorizer == nil || !refused {
		if err := t.checkStatus(req, res); err != nil {
			end()
			return nil, errors.Join(err, res.Body.Close())
		}
	}
	body := &responseBody{
		body: res.Body, limit: t.limits.MaxMessage, notices: perSecond(t.limits.MaxNotices),
		wait: t.waitPending, done: ctx.Done(), end: end, fail: t.fail, from: from,
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body.events = jsonrpc.NewReader(res.Body, t.limits.MaxMessage)
	}
	res.Body = body
	if res.ContentLength > 0 {
		res.ContentLength = -1 // the body may be changed
	}
	return res, nil
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

// answeredRequest returns the id of the server's request that req answers, if it answers one.
func answeredRequest(req *http.Request) (id mcpjsonrpc.ID, ok bool) {
	if req.Method != http.MethodPost {
		return id, false
	}
	raw, err := bodyOf(req)
	if err != nil {
		return id, false
	}
	m, err := mcpjsonrpc.DecodeMessage(raw)
	if r, ok := m.(*mcpjsonrpc.Response); err == nil && ok {
		return r.ID, true
	}
	return id, false
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

// responseBody is a body with limits. It changes messages so that the MCP SDK can read them; see
// [fixMessage].
type responseBody struct {
	body   io.ReadCloser
	events *jsonrpc.Reader // the lines of an event stream, nil if the body is one message
	from   netip.Addr      // the server's address, not valid if a proxy connected to it
	limit  int
	unread []byte
	err    error
	end    func()
	fail   context.CancelCauseFunc // ends the connection

	notices *rate.Limiter // of events
	wait    func(done <-chan struct{}) error
	done    <-chan struct{}
}

// Read implements [io.Reader].
func (b *responseBody) Read(p []byte) (int, error) {
	for len(b.unread) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	return n, nil
}

// fill reads the next line of an event stream, or the whole of a single message.
func (b *responseBody) fill() {
	if b.events == nil {
		var all []byte
		all, b.err = io.ReadAll(io.LimitReader(b.body, int64(b.limit)+1))
		if b.err == nil {
			b.err = io.EOF
		}
		if len(all) > b.limit {
			all, b.err = nil, messageTooLong(b.limit)
			b.fail(b.err)
		}
		b.unread = fixMessage(all)
		return
	}
	line, err := b.events.Append(nil)
	if err != nil {
		if b.err = limitReadError(err); b.err != err {
			b.fail(b.err)
		}
		return
	}
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		waitFor(b.notices, b.done)
		b.err = b.wait(b.done)
		data = bytes.TrimSpace(data)
		if fixed := fixMessage(data); !bytes.Equal(fixed, data) {
			line = append(append([]byte("data: "), fixed...), '\n')
		}
	}
	b.unread = line
}

// Close implements [io.Closer].
func (b *responseBody) Close() error {
	b.end()
	return b.body.Close()
}
