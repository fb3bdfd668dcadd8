package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/time/rate"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

// stream is the body of a response as the MCP SDK reads it: server-sent events with a readable
// message each. The stream that answers a request always ends with an answer; if the server's ends
// without one, that is an error, unless the server lets us continue it. The stream for notifications
// is asked for again whenever it ends, until the connection does.
type stream struct {
	transport *httpTransport
	request   *http.Request
	id        mcpjsonrpc.ID // of the request that is answered; not valid if there is none
	outcome   *outcome
	answered  bool

	// first receives the first response to a request for notifications that comes late, or is nil.
	first  chan streamResponse
	status int           // of the first response
	body   io.Closer     // of the current response, nil while there is none
	events *sse.Reader   // of body
	begun  bool          // something of body was read
	opened time.Time     // when body was opened
	lastID string        // of the last event
	retry  time.Duration // which the server wants before the next attempt
	failed int           // attempts in a row that brought nothing

	notices    *rate.Limiter
	unread     []byte
	err        error
	unreadable string // the last message that could not be read
}

// streamResponse is what a request for a stream has brought.
type streamResponse struct {
	res *http.Response
	err error
}

func (t *httpTransport) newStream(req *http.Request) *stream {
	return &stream{transport: t, request: req, notices: perSecond(t.limits.MaxNotices)}
}

// response returns the response for the SDK, which reads s instead of the body of res.
func (s *stream) response(res *http.Response) *http.Response {
	shown := *res
	shown.StatusCode, shown.Status = http.StatusOK, "200 OK"
	shown.Header = res.Header.Clone()
	shown.Header.Set("Content-Type", "text/event-stream")
	shown.ContentLength, shown.Body = -1, s
	s.begin(res)
	return &shown
}

// begin makes s read the body of res.
func (s *stream) begin(res *http.Response) {
	s.status, s.body, s.begun, s.opened = res.StatusCode, res.Body, false, time.Now()
	s.events = sse.NewReader(res.Body, s.transport.limits.MaxMessage+len("data: "))
}

// listenTimeout is how long the connection waits for the stream for notifications, so that nothing
// that the server sends early is lost. Proxies may hold back the beginning of a stream.
const listenTimeout = 2 * time.Second

// listen asks the server for the stream for notifications, which it need not offer.
func (t *httpTransport) listen(req *http.Request) (*http.Response, error) {
	s := t.newStream(req)
	s.first = make(chan streamResponse, 1)
	go func() {
		res, err := t.get.Do(req)
		s.first <- streamResponse{res, err}
	}()
	shown := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: s,
		Header: http.Header{"Content-Type": {"text/event-stream"}}}
	select {
	case first := <-s.first:
		s.first = nil
		if s.accept(first) != nil {
			shown.StatusCode, shown.Status = http.StatusMethodNotAllowed, "405 Method Not Allowed"
			shown.Body = http.NoBody
		}
	case <-time.After(listenTimeout):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	return shown, nil
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	for len(s.unread) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	if s.id.IsValid() {
		s.transport.open.remove(s.id)
	}
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}

// fill reads what comes next.
func (s *stream) fill() {
	if s.body == nil {
		s.reopen()
		return
	}
	if !s.begun {
		s.begun = true
		if first, err := s.events.Peek(); err == nil && (first == '{' || first == '[') {
			s.takeWhole()
			return
		}
	}
	e, err := s.events.Next()
	s.lastID = cmp.Or(s.events.LastID(), s.lastID)
	s.retry = cmp.Or(s.events.Retry(), s.retry)
	switch {
	case err != nil:
		s.endBody(err)
	case s.answered: // nothing more is expected; the body is read to its end to reuse the connection
	case e.Name == "" || e.Name == "message":
		s.failed = 0
		s.take(e.Data)
	}
}

// takeWhole takes a body that is one message, or several in an array.
func (s *stream) takeWhole() {
	whole, err := s.events.Rest()
	if err != nil {
		s.endBody(err)
		return
	}
	s.take(whole)
	s.endBody(io.EOF)
}

// take takes a message, or several in an array.
func (s *stream) take(data []byte) {
	waitFor(s.notices, s.request.Context().Done())
	if err := s.transport.waitPending(s.request.Context().Done()); err != nil {
		s.err = err
		return
	}
	for _, raw := range splitBatch(data) {
		m, err := decodeMessage(raw, s.transport.open)
		if err != nil && m != nil && s.id.IsValid() {
			err = nil // without an id it can only answer this request
		}
		if err != nil {
			s.unreadable = firstLine(raw)
			s.transport.log.Warn("skipped an unreadable message of an MCP server",
				"message", s.unreadable, "error", err)
			continue
		}
		if answer, ok := m.(*mcpjsonrpc.Response); ok && s.id.IsValid() {
			if !s.transport.open.has(answer.ID) {
				answer.ID = s.id // it can only answer this request
			}
			s.answered = s.answered || answer.ID == s.id
		}
		s.give(m)
	}
}

// give hands a message to the SDK.
func (s *stream) give(m mcpjsonrpc.Message) {
	encoded, err := mcpjsonrpc.EncodeMessage(m)
	if err != nil {
		s.transport.log.Warn("skipped a message of an MCP server", "error", err)
		return
	}
	s.unread = append(append(append(s.unread, "data: "...), encoded...), "\n\n"...)
}

// endBody is called when the current body has ended with err.
func (s *stream) endBody(err error) {
	t := s.transport
	switch {
	case errors.Is(err, sse.ErrTooLong):
		s.err = messageTooLong(t.limits.MaxMessage)
		t.fail(s.err)
		return
	case s.request.Context().Err() != nil:
		s.err = context.Cause(s.request.Context())
		return
	case s.answered:
		s.err = io.EOF
		return
	}
	if rest, ok := bytes.CutPrefix(s.unfinished(), []byte("data:")); ok {
		s.take(rest) // the last line lacks its end
	}
	switch {
	case s.answered:
		s.err = io.EOF
	case s.id.IsValid() && s.lastID == "":
		s.giveUp(s.explainEnd(err))
	default:
		_ = s.body.Close()
		s.body = nil
		if time.Since(s.opened) > s.pauseBefore() {
			s.failed = 0
		}
	}
}

// unfinished returns what was read of a line that has no end.
func (s *stream) unfinished() []byte {
	rest, _ := s.events.Rest()
	return bytes.TrimSpace(rest)
}

// explainEnd returns why there is no answer, after the body has ended with err.
func (s *stream) explainEnd(err error) error {
	switch {
	case s.unreadable != "":
		return &statusError{http.StatusOK, "its answer cannot be read: " + text.Quote(s.unreadable)}
	case errors.Is(err, io.EOF) && s.status != http.StatusOK:
		return &statusError{s.status, fmt.Sprintf("it answered %d %s without a message",
			s.status, http.StatusText(s.status))}
	}
	return &lostAnswerError{err}
}

// giveUp answers the request with err.
func (s *stream) giveUp(err error) {
	s.outcome.set(err)
	s.answered, s.err = true, io.EOF
	s.give(&mcpjsonrpc.Response{ID: s.id, Error: &mcpjsonrpc.Error{
		Code: mcpjsonrpc.CodeInternalError, Message: err.Error()}})
}

// maxAttempts is how often a stream that answers a request is asked for again in a row.
const maxAttempts = 5

// pauseBefore returns how long to wait before the next attempt.
func (s *stream) pauseBefore() time.Duration {
	if s.retry > 0 && s.failed == 0 {
		return s.retry
	}
	return max(s.retry, min(2*s.transport.limits.Backoff<<min(s.failed, 20), maxBackoff))
}

// reopen asks for the rest of the stream, which may be over.
func (s *stream) reopen() {
	ctx := s.request.Context()
	var end error
	switch {
	case s.first != nil:
		select {
		case next := <-s.first:
			s.first = nil
			end = s.accept(next)
		case <-ctx.Done():
		}
	case s.id.IsValid() && s.failed >= maxAttempts:
		end = io.EOF
	case pause.For(ctx, s.pauseBefore()) == nil:
		s.failed++
		res, err := s.transport.get.Do(s.continuation())
		end = s.accept(streamResponse{res, err})
	}
	if s.id.IsValid() && end != nil {
		s.giveUp(&lostAnswerError{end})
		return
	}
	if end != nil {
		<-ctx.Done() // the stream is over, but the connection is not
	}
	s.err = context.Cause(ctx)
}

// continuation returns the request for the rest of the stream.
func (s *stream) continuation() *http.Request {
	req := s.request.Clone(s.request.Context())
	req.Method, req.Body, req.GetBody, req.ContentLength = http.MethodGet, nil, nil, 0
	for name := range req.Header {
		if strings.HasPrefix(name, "Mcp-") && name != sessionHeader &&
			name != "Mcp-Protocol-Version" {
			req.Header.Del(name)
		}
	}
	req.Header.Del("Content-Type")
	req.Header.Set("Accept", "text/event-stream")
	if s.lastID != "" {
		req.Header.Set("Last-Event-ID", s.lastID)
	}
	if h := s.transport.authorizer; h != nil {
		if source, err := h.TokenSource(req.Context()); err == nil && source != nil {
			if token, err := source.Token(); err == nil {
				req.Header.Set("Authorization", "Bearer "+token.AccessToken)
			}
		}
	}
	return req
}

// accept begins with the response to a request for the stream, which may be asked for again if that
// fails. It returns why there will be no stream if that is final.
func (s *stream) accept(o streamResponse) error {
	t := s.transport
	if o.err != nil {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(o.res.Header.Get("Content-Type"))
	if o.res.StatusCode == http.StatusOK && kind == "text/event-stream" {
		s.begin(o.res)
		return nil
	}
	defer o.res.Body.Close()
	code := o.res.StatusCode
	passes := code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	switch {
	case passes:
		return nil
	case s.id.IsValid():
		return fmt.Errorf("asked for the rest, it answered %d %s", code, http.StatusText(code))
	case s.opened.IsZero(), code == http.StatusMethodNotAllowed, code < http.StatusBadRequest:
		return io.EOF // the server does not offer it
	}
	return t.checkSession(s.request, o.res, outgoing{})
}
