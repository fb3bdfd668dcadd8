package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	mcpjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/internal/wire/sse"
)

// stream is a series of responses, each of which continues the one before. [stream.follow] reads
// them, and asks for the next one, until it knows how the stream has ended. The stream that answers
// a request ends with the answer, or with an error if the server does not let us continue it. The
// stream for notifications ends with the connection, or if the server does not offer it.
type stream struct {
	transport *httpTransport
	request   *outgoing // that is answered, or nil

	offered    bool          // there was a response
	heard      bool          // the last response had an event
	lastID     string        // of the last event
	retry      time.Duration // which the server wants before the next attempt
	unreadable string        // the last message that could not be read
}

// maxAttempts is how often a stream that answers a request is asked for again in a row, and a
// request is sent that the server wants later.
const maxAttempts = 5

// follow reads a response, if there is one already, and those that continue it. It returns nil once
// the request was answered, and otherwise why it will not be.
func (s *stream) follow(ctx context.Context, res *http.Response) error {
	for failed := 0; ; failed++ { // attempts in a row that brought nothing
		if res != nil {
			opened := time.Now()
			end := s.read(ctx, res)
			switch {
			case end == nil, ctx.Err() != nil, errors.As(end, new(*limitError)):
				return end
			case s.request != nil && s.lastID == "":
				return s.explainEnd(res, end)
			case s.heard, time.Since(opened) > s.pauseBefore(0):
				failed = 0
			}
		}
		wait := s.pauseBefore(failed)
		switch {
		case s.request == nil:
		case failed == maxAttempts:
			return newLostAnswer(io.EOF)
		case wait >= s.transport.limits.CallTimeout:
			return newLostAnswer(fmt.Errorf("it asks to fetch the rest in %v", wait))
		}
		err := pause.For(ctx, wait)
		if err == nil {
			res, err = s.ask(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// pauseBefore returns how long to wait before the next attempt.
func (s *stream) pauseBefore(failed int) time.Duration {
	if s.retry > 0 && failed == 0 {
		return s.retry
	}
	return max(s.retry, min(2*s.transport.limits.Backoff<<min(failed, 20), maxBackoff))
}

// read passes on the messages of a response. It returns nil once the request was answered, and
// otherwise how the response has ended.
func (s *stream) read(ctx context.Context, res *http.Response) error {
	t := s.transport
	defer res.Body.Close()
	s.offered, s.heard = true, false
	events := sse.NewReader(res.Body, t.limits.MaxMessage+len("data: "))
	next := s.nextEvent
	if first, err := events.Peek(); err == nil && (first == '{' || first == '[') {
		next = wholeBody // whatever its Content-Type
	}
	for {
		data, err := next(events)
		answered, failed := s.take(ctx, data)
		switch {
		case failed != nil:
			return failed
		case answered:
			_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
			return nil
		case errors.Is(err, sse.ErrTooLong):
			err = messageTooLong(t.limits.MaxMessage)
			t.cancel(err)
			return err
		case err != nil:
			return err
		}
	}
}

// wholeBody returns a body that is one message, or several in an array.
func wholeBody(events *sse.Reader) ([]byte, error) {
	whole, err := events.Rest()
	if err == nil {
		err = io.EOF
	}
	return whole, err
}

// nextEvent returns the data of the next event.
func (s *stream) nextEvent(events *sse.Reader) ([]byte, error) {
	e, err := events.Next()
	if id := events.LastID(); id != "" && id != s.lastID {
		s.lastID, s.heard = id, true
	}
	s.retry = cmp.Or(events.Retry(), s.retry)
	if e.Name != "" && e.Name != "message" {
		return nil, err
	}
	return e.Data, err
}

// take passes on the messages in data, and reports whether the request is answered with them.
func (s *stream) take(ctx context.Context, data []byte) (answered bool, err error) {
	t := s.transport
	messages, unreadable := t.decode(data)
	s.unreadable = cmp.Or(unreadable, s.unreadable)
	for _, m := range messages {
		s.heard = true
		if answer, ok := m.(*mcpjsonrpc.Response); ok && s.request != nil {
			if answered = answered || answer.ID == s.request.id; s.request.method == "initialize" {
				t.setRevision(answer.Result)
			}
		}
		if err := t.deliver(ctx, m); err != nil {
			return false, err
		}
	}
	return answered, nil
}

// explainEnd returns why the answer is missing after a response that ended with end.
func (s *stream) explainEnd(res *http.Response, end error) error {
	switch {
	case s.unreadable != "":
		return &transportError{fault: refused, code: res.StatusCode,
			text: cannotBeRead(s.unreadable)}
	case errors.Is(end, io.EOF) && res.StatusCode != http.StatusOK:
		return &transportError{fault: refused, code: res.StatusCode, text: fmt.Sprintf(
			"it answered %d %s without a message", res.StatusCode, http.StatusText(res.StatusCode))}
	}
	return newLostAnswer(end)
}

// ask asks for the next response. It returns nil without an error if it may be called again.
func (s *stream) ask(ctx context.Context) (*http.Response, error) {
	t := s.transport
	req, err := t.newRequest(ctx, http.MethodGet, &outgoing{})
	if err != nil {
		return nil, err
	}
	setHeader(req.Header, "Last-Event-ID", s.lastID)
	res, err := t.client.Do(req)
	if err != nil {
		return nil, nil
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	code := res.StatusCode
	if code == http.StatusOK && kind == "text/event-stream" {
		return res, nil
	}
	defer res.Body.Close()
	switch {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		s.retry = max(s.retry, pauseOf(res))
		return nil, nil
	case s.request != nil:
		return nil, newLostAnswer(fmt.Errorf("asked for the rest, it answered %d %s", code,
			http.StatusText(code)))
	case !s.offered, code == http.StatusMethodNotAllowed, code < http.StatusBadRequest:
		return nil, errNotOffered
	}
	return nil, t.checkSession(res, &outgoing{}, readComplaint(res))
}

var errNotOffered = errors.New("the server does not offer a stream for notifications")

// listenTimeout is how long the connection waits for the stream for notifications, so that nothing
// that the server sends early is lost. Proxies may hold back the beginning of a stream.
const listenTimeout = 2 * time.Second

// listen asks the server for the stream for notifications.
func (t *httpTransport) listen() {
	asked := make(chan struct{})
	t.spawn(func() {
		s := &stream{transport: t}
		res, err := s.ask(t.ctx)
		close(asked)
		if err == nil {
			_ = s.follow(t.ctx, res)
		}
	})
	select {
	case <-asked:
	case <-time.After(listenTimeout):
	case <-t.open.Done():
	}
}
