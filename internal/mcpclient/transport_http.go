package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/mcproots"
)

// remote is the HTTP side of a connection. Its headers go to the server's own origin and nowhere else, whatever
// the server redirects to or names as its endpoint.
type remote struct {
	origin    *url.URL
	headers   []Pair
	transport *http.Transport
	ctx       context.Context // ends with the connection
	fail      context.CancelCauseFunc
	asked     *questions
	limit     int
	notices   int
}

// newRemote prepares a connection that lasts until ctx ends, which fail has it do.
func newRemote(ctx context.Context, fail context.CancelCauseFunc, c Config, o Options) (*remote, error) {
	origin, err := url.Parse(c.URL)
	if err != nil || origin.Host == "" || (origin.Scheme != "http" && origin.Scheme != "https") {
		return nil, errors.New("its url is not an absolute http or https URL")
	}
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{}
	}
	return &remote{
		origin: origin, headers: c.Headers, transport: base.Clone(), ctx: ctx, fail: fail,
		asked: newQuestions(o), limit: o.MaxMessage, notices: o.MaxNotices,
	}, nil
}

// over is the SDK's transport of that kind.
func (r *remote) over(kind Transport) mcp.Transport {
	client := &http.Client{Transport: r, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("too many redirects")
		}
		return r.own(req.URL)
	}}
	if kind == SSE {
		return &mcp.SSEClientTransport{Endpoint: r.origin.String(), HTTPClient: client, MaxEventSize: r.limit}
	}
	return &mcp.StreamableClientTransport{Endpoint: r.origin.String(), HTTPClient: client, MaxEventSize: r.limit, MaxRetries: 2}
}

// own refuses other origins.
func (r *remote) own(u *url.URL) error {
	if u.Scheme != r.origin.Scheme || u.Host != r.origin.Host {
		return fmt.Errorf("it leads to another server, %s://%s, which is not given its headers: configure that URL if you trust it", u.Scheme, u.Host)
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.own(req.URL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	req = req.Clone(ctx)
	for _, h := range r.headers {
		req.Header.Set(h.Name, h.Value)
	}
	if id, ok := answers(req); ok {
		r.asked.add(id)
		defer r.asked.taken(id)
	}
	res, err := r.transport.RoundTrip(req)
	if err != nil {
		stop()
		cancel(nil)
		return nil, err
	}
	body := &mended{
		body: res.Body, limit: r.limit, notices: allowance{perSecond: r.notices}, room: r.room, done: ctx.Done(),
		end: func() {
			stop()
			cancel(nil)
		},
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body.lines = jsonrpc.NewReader(res.Body, r.limit)
	}
	res.Body = body
	if res.ContentLength > 0 {
		res.ContentLength = -1
	}
	return res, nil
}

// answers is the question that a request answers, if it does.
func answers(req *http.Request) (id mcpjsonrpc.ID, ok bool) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return id, false
	}
	body, err := req.GetBody()
	if err != nil {
		return id, false
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return id, false
	}
	m, err := mcpjsonrpc.DecodeMessage(raw)
	if r, ok := m.(*mcpjsonrpc.Response); err == nil && ok {
		return r.ID, true
	}
	return id, false
}

// room waits while the server does not take the answers to what it asked. One that never does is left.
func (r *remote) room(done <-chan struct{}) error {
	err := r.asked.room(done)
	if err != nil {
		r.fail(err)
	}
	return err
}

// close lets the connections go.
func (r *remote) close() { r.transport.CloseIdleConnections() }

// mended is a body whose messages the SDK can read: see [mcproots.Mend].
type mended struct {
	body  io.ReadCloser
	lines *jsonrpc.Reader // those of body if they are events, nil if it is one message
	limit int
	rest  []byte
	err   error
	end   func()

	notices allowance // of events
	room    func(done <-chan struct{}) error
	done    <-chan struct{}
}

// Read implements [io.Reader].
func (m *mended) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.fill()
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// fill reads the next line, or all of a body that is one message.
func (m *mended) fill() {
	if m.lines == nil {
		var all []byte
		all, m.err = io.ReadAll(io.LimitReader(m.body, int64(m.limit)+1))
		if m.err == nil {
			m.err = io.EOF
		}
		if len(all) > m.limit {
			all, m.err = nil, &MessageError{Limit: m.limit}
		}
		m.rest = mcproots.Mend(all)
		return
	}
	line, err := m.lines.Append(nil)
	if err != nil {
		m.err = tooLong(err)
		return
	}
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if ok {
		m.notices.take(m.done)
		m.err = m.room(m.done)
	}
	if ok && bytes.Contains(data, []byte(`"inputRequests"`)) {
		line = append(append([]byte("data: "), mcproots.Mend(bytes.TrimSpace(data))...), '\n')
	}
	m.rest = line
}

// Close implements [io.Closer].
func (m *mended) Close() error {
	m.end()
	return m.body.Close()
}
