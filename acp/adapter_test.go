package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// panicking is a scripted backend that panics where a test says.
type panicking struct {
	scripted
	opening, prompting, calling, cancelling, closing atomic.Bool

	seen      *workspace.Workspace
	cancelled chan struct{} // has a value for each Cancel that panics
}

func (r *panicking) Open(
	ctx context.Context, a backend.Activation, h backend.Host,
) (backend.Session, backend.Opened, error) {
	if r.seen = h.Workspace(); r.opening.Load() {
		panic("in Open")
	}
	s, opened, err := r.scripted.Open(ctx, a, h)
	return &panickingSession{Session: s, runtime: r}, opened, err
}

type panickingSession struct {
	backend.Session
	runtime *panicking
}

func (s *panickingSession) Prompt(
	ctx context.Context, params backend.Raw, u backend.Updates,
) backend.Work {
	if s.runtime.prompting.Load() {
		panic("in Prompt")
	}
	work := s.Session.Prompt(ctx, params, u)
	return func() (backend.Raw, error) {
		result, err := work()
		if ctx.Err() != nil && s.runtime.cancelling.Load() {
			<-s.runtime.cancelled // a turn that is over is not cancelled
		}
		return result, err
	}
}

func (s *panickingSession) Call(
	ctx context.Context, method string, params backend.Raw,
) backend.Work {
	if s.runtime.calling.Load() {
		panic("in Call")
	}
	return s.Session.Call(ctx, method, params)
}

func (s *panickingSession) Cancel(params backend.Raw) {
	if s.runtime.cancelling.Load() {
		s.runtime.cancelled <- struct{}{}
		panic("in Cancel")
	}
	s.Session.Cancel(params)
}

func (s *panickingSession) Close(ctx context.Context) error {
	if s.runtime.closing.Load() {
		panic("in Close")
	}
	return s.Session.Close(ctx)
}

// Where in a backend a panic comes from makes no difference: its request fails, and nothing is held
// up by it.
//
// Clause W8.
func TestPanics(t *testing.T) {
	r := &panicking{}
	c := start(t, acp.Options{Backend: using(r)}.With(acp.Tuning{MaxSessions: 3}))
	a := folder(t)
	id, other := c.open(a), c.open(a)
	c.texts(id, "say one")
	turn := c.beginTurn(other, "wait", "waiting")
	fails := func(where *atomic.Bool, method, params string) {
		t.Helper()
		where.Store(true)
		m := c.try(method, params)
		where.Store(false)
		require.NotNil(t, m.Error, method)
		require.Equal(t, jsonrpc.CodeInternal, m.Error.Code, method)
		require.Nil(t, m.Error.Data)
	}
	for range 2 {
		for _, method := range opening {
			fails(&r.opening, method, rootsParams(id, a))
			_, err := r.seen.Stat(a)
			require.ErrorIs(t, err, workspace.ErrClosed, "%s: what was opened is freed", method)
		}
		fails(&r.prompting, "session/prompt", promptParams(id, "say x"))
		fails(&r.calling, "session/set_mode", idParams(id))
	}
	require.Equal(t, []string{"two"}, c.texts(id, "say two"), "the session goes on")
	c.call("session/close", idParams(c.open(a)))
	c.call("session/load", rootsParams(id, a))
	c.call("session/close", idParams(id))
	fails(&r.opening, "session/load", rootsParams(id, a))
	c.call("session/load", rootsParams(id, a))
	c.open(a)

	c.send(notification("session/cancel", idParams(other)))
	require.Equal(t, "cancelled", c.response(turn).stopReason(t))
	require.Equal(t, []string{"still here"}, c.texts(other, "say still here"))
}

// Some of a backend's code runs where no request waits for it.
//
// Clause W8.
func TestPanicOutsideRequest(t *testing.T) {
	r, log := &panicking{cancelled: make(chan struct{}, 2)}, &logtest.Text{}
	c := start(t, acp.Options{Backend: using(r), Logger: log.Logger(slog.LevelDebug)})
	a := folder(t)
	id, other := c.open(a), c.open(a)
	r.cancelling.Store(true)
	for _, cancel := range []func(prompt string) string{
		func(prompt string) string {
			return notification("$/cancel_request", `{"requestId":`+prompt+`}`)
		},
		func(string) string { return notification("session/cancel", idParams(id)) },
	} {
		prompt := c.beginTurn(id, "wait", "waiting")
		c.send(cancel(prompt))
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
	require.Equal(t, []string{"x"}, c.texts(id, "say x"))

	r.closing.Store(true)
	c.call("session/load", rootsParams(id, a))
	c.call("session/close", idParams(id))
	_, err := r.seen.Stat(a)
	require.ErrorIs(t, err, workspace.ErrClosed)
	require.Equal(t, []string{"y"}, c.texts(other, "say y"))
	c.leave()
	require.Equal(t, 2, strings.Count(log.String(), "in=cancel"))
	require.Equal(t, 3, strings.Count(log.String(), "in=close"),
		"of both of one session's, and the other's at the end")
}

// panickingStore is a store that panics in every method while it is nil.
type panickingStore struct{ sessionstore.Store }

// A panic of an embedder's store fails the requests that need it, wherever it is called, and
// nothing else: what they had opened is freed, and once the store works all is well.
//
// Clause W8.
func TestPanicsOfStore(t *testing.T) {
	memory, log := memstore.New(t), &logtest.Text{}
	store := &panickingStore{memory}
	r := &scripted{release: make(chan struct{})}
	c := start(t, acp.Options{Store: store, Backend: using(r), Logger: log.Logger(slog.LevelInfo)}.
		With(acp.Tuning{MaxSessions: 3}))
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	stored := c.open(a)
	c.call("session/close", idParams(stored))

	prompt := c.beginTurn(id, "stubborn", "stubborn")
	store.Store = nil
	close(r.release)
	m := c.response(prompt)
	require.NotNil(t, m.Error)
	require.Equal(t, jsonrpc.CodeInternal, m.Error.Code)
	for range 3 {
		for _, request := range []struct{ method, params string }{
			{"session/new", rootsParams("", a)}, {"session/fork", rootsParams(id, a)},
			{"session/load", rootsParams(stored, a)}, {"session/resume", rootsParams(id, a)},
			{"session/list", "{}"}, {"session/prompt", promptParams(id, "say lost")},
			{"session/set_title", `{"sessionId":"` + id + `","title":"x"}`},
		} {
			before := strings.Count(log.String(), "msg=panic")
			m := c.try(request.method, request.params)
			require.NotNil(t, m.Error, request.method)
			require.Equal(t, jsonrpc.CodeInternal, m.Error.Code, request.method)
			require.LessOrEqual(t, strings.Count(log.String(), "msg=panic"), before+1,
				request.method)
		}
	}
	store.Store = memory
	require.Equal(t, []string{"two"}, c.texts(id, "say two"))
	c.call("session/load", rootsParams(stored, a))
	require.Equal(t, []string{"three"}, c.texts(c.open(a), "say three"), "no session is counted twice")
}

// A trace that panics is not called again, and nothing depends on it.
//
// Clause W8.
func TestPanicOfTrace(t *testing.T) {
	for _, panics := range []bool{false, true} {
		log := &logtest.Text{}
		c := start(t, acp.Options{Logger: log.Logger(slog.LevelInfo),
			Trace: func(sent bool, _ []byte) {
				if sent == panics {
					panic("in the trace")
				}
			}})
		require.Equal(t, []string{"one"}, c.texts(c.open(folder(t)), "say one"))
		c.leave()
		require.Equal(t, 1, strings.Count(log.String(), "msg=panic"))
	}
}

// Clause W8.
func TestPanicIsLogged(t *testing.T) {
	log := &logtest.Text{}
	c := start(t, acp.Options{Logger: log.Logger(slog.LevelDebug)})
	id := c.open(folder(t))
	m := c.try("session/prompt", promptParams(id, "panic"))
	require.Equal(t, jsonrpc.CodeInternal, m.Error.Code)
	require.NotContains(t, m.Error.Message, "scripted")
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "scriptedSession")
	require.NotContains(t, log.String(), "panic=scripted", "a value may quote what was said")
}

// FuzzServe sends any bytes to a whole agent: it ends with its input, and says nothing but JSON-RPC
// on the way.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/",` +
			`"additionalDirectories":["/tmp"],"mcpServers":[]}}` + "\n" +
			`{"jsonrpc":"2.0","id":3,"method":"session/list","params":{"cwd":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}`,
		"\x00{}[]\n\xff\n{\"jsonrpc\":\"2.0\"}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		err := serve(t.Context(), io.NopCloser(bytes.NewReader(input)), &out, acp.Options{
			Store:   memstore.New(t),
			Backend: using(&scripted{release: closed()}),
			MaxLine: 1 << 16,
		}.With(acp.Tuning{Wire: jsonrpc.Options{Grace: time.Second}}))
		require.NoError(t, err)
		lines := bufio.NewScanner(&out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m struct{ JSONRPC string }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &m), lines.Text())
			require.Equal(t, "2.0", m.JSONRPC)
		}
	})
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
