package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcproots "github.com/acp-agent/acp-agent/internal/mcp/roots"
	"github.com/acp-agent/acp-agent/internal/strictjson"
)

const (
	// sessionTimeout is how long an HTTP session lasts without a request.
	sessionTimeout = time.Hour
	// writeChunk is how many bytes of a response a client must read within the write timeout.
	writeChunk = 64 << 10
	// requestSize is the size of a request without its body, in bytes, as the budget counts it.
	requestSize = 4 << 10
)

// Handler serves clients over streamable HTTP. It rejects requests without the token if
// [Options.Token] is set, requests to a loopback address that name another host than localhost, and
// requests from web pages of another origin. Shut the HTTP server down before calling
// [Server.Close].
func (s *Server) Handler() http.Handler {
	sessions := s.sdkHandler(mcp.StreamableHTTPOptions{SessionTimeout: sessionTimeout})
	// The SDK serves modern clients only without sessions, but legacy clients are asked for roots
	// in a session.
	stateless := s.sdkHandler(
		mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	byEra := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mcproots.IsModern(r.Header.Get("Mcp-Protocol-Version")) {
			stateless.ServeHTTP(w, r)
		} else {
			sessions.ServeHTTP(w, r)
		}
	})
	sameOrigin := http.NewCrossOriginProtection().Handler(s.limitRequests(byEra))
	return s.setDeadlines(s.requireToken(sameOrigin))
}

func (s *Server) sdkHandler(o mcp.StreamableHTTPOptions) http.Handler {
	o.MaxRequestBodyBytes = -1 // limitRequests has checked it
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		return s.forClient(&client{server: s, onlyDuringCalls: true})
	}, &o)
}

// setDeadlines ends requests whose body does not arrive in time, and responses that the client does
// not read.
func (s *Server) setDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		deadline := time.Now().Add(s.limits.bodyTimeout)
		if r.ContentLength != 0 && control.SetReadDeadline(deadline) == nil {
			r.Body = &timedBody{ReadCloser: r.Body, control: control}
		}
		timed := &timedWriter{ResponseWriter: w, control: control, timeout: s.limits.writeTimeout}
		next.ServeHTTP(timed, r)
	})
}

// timedBody is a request body with a read deadline. It removes the deadline at its end, because the
// server reads from the connection while it handles the request.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timedWriter is a response with a deadline for each of its pieces: a client may read slowly, but
// must not stop.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// Unwrap is used by [http.ResponseController].
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements [io.Writer].
func (w *timedWriter) Write(p []byte) (written int, err error) {
	for {
		piece := p[:min(len(p), writeChunk)]
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
		n, err := w.ResponseWriter.Write(piece)
		written, p = written+n, p[n:]
		if err != nil || len(p) == 0 {
			return written, err
		}
	}
}

// requireToken rejects requests without the token, if there is one.
func (s *Server) requireToken(next http.Handler) http.Handler {
	if s.options.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		// hashes have the same length, and are compared in constant time
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") ||
			subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="acp-agent"`)
			w.Header().Set("Connection", "close") // the body is not read
			http.Error(w, "a token is required: send the header Authorization: Bearer TOKEN with "+
				"the token that acp-agent mcp printed or was given", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitRequests reads the body of each request, and passes it on when fewer calls are running than
// the limits allow. A request that waits for its body or its turn does not keep others from
// running, but its size counts. It does not limit GET requests, which open event streams: the SDK
// allows one for each session.
func (s *Server) limitRequests(next http.Handler) http.Handler {
	slow := &transfers{since: map[*http.ResponseController]time.Time{}}
	places := [memories]*slots{newSlots(s.limits.calls, slow), newSlots(s.limits.files, slow),
		newSlots(s.limits.files, slow)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		read := &countedBody{ReadCloser: r.Body, ctx: r.Context(), timeout: s.limits.bodyWait,
			budget: &s.bodies, slow: slow, control: control}
		defer read.release()
		longest := int64(min(s.options.MaxMessage, s.limits.body))
		body, err := read.all(http.MaxBytesReader(w, read, longest))
		if err != nil {
			w.Header().Set("Connection", "close")
			rejectBody(w, err)
			return
		}
		body = mendRoots(body)
		checked := checkBody(body)
		if checked.rejected == nil && checked.needsSession &&
			r.Header.Get("Mcp-Session-Id") == "" &&
			!mcproots.IsModern(r.Header.Get("Mcp-Protocol-Version")) {
			checked.rejected = errorResponse(nil, jsonrpc.CodeInvalidRequest,
				"there is no session: send initialize first")
		}
		if checked.rejected != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(checked.rejected)
			return
		}
		if calls := checked.calls[holdsLittle]; calls > s.limits.calls {
			http.Error(w, fmt.Sprintf("too many calls in a batch (the limit is %d)",
				s.limits.calls),
				http.StatusRequestEntityTooLarge)
			return
		}
		from := checked.sender(r)
		for held := memories - 1; held >= holdsLittle; held-- {
			// A call that waits to hold files is not running.
			n := min(checked.calls[held], places[held].limit)
			if !places[held].acquire(r.Context(), from, n) {
				return // the client has gone
			}
			defer places[held].release(from, n)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(&callResponse{ResponseWriter: w, control: control, slow: slow}, r)
	})
}

// rejectBody answers a request whose body could not be read.
func rejectBody(w http.ResponseWriter, err error) {
	tooLong, ok := errors.AsType[*http.MaxBytesError](err)
	switch {
	case ok:
		http.Error(w, fmt.Sprintf("the request is longer than the limit of %d bytes",
			tooLong.Limit), http.StatusRequestEntityTooLarge)
	case errors.Is(err, errBudget):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the request did not arrive in time", http.StatusRequestTimeout)
	default:
		http.Error(w, "the request could not be read", http.StatusBadRequest)
	}
}

// checkedBody is what the server must know of a request before it is handled.
type checkedBody struct {
	// calls has the number of messages that expect an answer, under holdsLittle, and of those among
	// them that hold more.
	calls [memories]int
	// info is how a modern client, which has no session, describes itself.
	info string
	// needsSession reports whether a legacy client must have a session for a message among them.
	needsSession bool
	// rejected is the response to a body that is not JSON, and to a request with malformed params,
	// or nil. The SDK rejects other malformed messages.
	rejected []byte
}

// checkBody examines the body of a request.
func checkBody(body []byte) (c checkedBody) {
	// The SDK would ignore what follows a message.
	if code, problem := checkJSON(body); problem != "" {
		c.rejected = errorResponse(nil, code, "the body "+problem)
		return c
	}
	messages := []json.RawMessage{body}
	isBatch := json.Unmarshal(body, &messages) == nil
	for _, raw := range messages {
		m, err := decodeMessage(raw)
		switch {
		case err != nil || !m.isCall():
			continue
		case m.problem != "" && !isBatch:
			c.rejected = errorResponse(m.request.ID.Raw(), jsonrpc.CodeInvalidParams, m.problem)
			return c
		case m.memory != holdsLittle:
			c.calls[m.memory]++
		}
		c.calls[holdsLittle]++
		switch m.request.Method {
		case "initialize", "server/discover", "ping":
		default:
			c.needsSession = true
		}
		c.info = string(strictjson.Find(m.request.Params, "_meta", mcp.MetaKeyClientInfo))
	}
	return c
}

// sender returns what tells the clients apart between which places are shared: their sessions, or
// where modern clients run and how they describe themselves.
func (c checkedBody) sender(r *http.Request) string {
	if session := r.Header.Get("Mcp-Session-Id"); session != "" {
		return session
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host + " " + c.info
}

// budget bounds a number of bytes.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reports whether there was room for n more bytes.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.used.Add(int64(-n))
	return false
}

// errBudget is returned when the bodies of all requests are too long together.
var errBudget = errors.New("the server is handling too many long requests: try again")

// countedBody counts the bytes that are read of a body in a budget.
type countedBody struct {
	io.ReadCloser
	ctx     context.Context
	timeout time.Duration // for waiting until there is room
	budget  *budget
	taken   int
	slow    *transfers
	control *http.ResponseController
}

// all reads the body through limited, which reads from b.
func (b *countedBody) all(limited io.Reader) ([]byte, error) {
	if err := b.take(requestSize); err != nil {
		return nil, err
	}
	b.slow.begin(b.control)
	defer b.slow.end(b.control)
	return io.ReadAll(limited)
}

// Read implements [io.Reader].
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.budget.take(n) {
		b.taken += n
		return n, err
	}
	b.slow.end(b.control) // it is not this client's fault
	defer b.slow.begin(b.control)
	if err := b.take(n); err != nil {
		return 0, err
	}
	return n, err
}

// take takes n bytes from the budget. While there is no room, it ends slow transfers.
func (b *countedBody) take(n int) error {
	ctx, cancel := context.WithTimeout(b.ctx, b.timeout)
	defer cancel()
	for !b.budget.take(n) {
		select {
		case <-time.After(slowAfter / 50):
			b.slow.endSlowest()
		case <-ctx.Done():
			return errBudget
		}
	}
	b.taken += n
	return nil
}

// release returns to the budget what was taken.
func (b *countedBody) release() { b.budget.used.Add(int64(-b.taken)) }

// slowAfter is how long a client has to send its request or to read a response while others wait.
const slowAfter = time.Second

// transfers are the requests that are being received and the responses that are being written.
type transfers struct {
	mu    sync.Mutex
	since map[*http.ResponseController]time.Time
}

func (t *transfers) begin(c *http.ResponseController) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since[c] = time.Now()
}

func (t *transfers) end(c *http.ResponseController) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.since, c)
}

// endSlowest ends the transfer that has taken longest, if there is a slow one.
func (t *transfers) endSlowest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var slowest *http.ResponseController
	for c, since := range t.since {
		if time.Since(since) > slowAfter && (slowest == nil || since.Before(t.since[slowest])) {
			slowest = c
		}
	}
	if slowest != nil {
		_ = slowest.SetReadDeadline(time.Now())
		_ = slowest.SetWriteDeadline(time.Now())
	}
}

// callResponse is the response of a request that was passed on.
type callResponse struct {
	http.ResponseWriter
	control *http.ResponseController
	slow    *transfers
}

// Unwrap is used by [http.ResponseController].
func (w *callResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements [io.Writer].
func (w *callResponse) Write(p []byte) (int, error) {
	w.slow.begin(w.control)
	defer w.slow.end(w.control)
	return w.ResponseWriter.Write(p)
}
