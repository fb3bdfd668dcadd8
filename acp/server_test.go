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
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/test/logtest"
	"github.com/acp-agent/acp-agent/internal/test/memstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// panicking is a scripted backend that panics where a test says.
type panicking struct {
	scripted
	opening, prompting, calling, cancelling, closing atomic.Bool
	seen                                             *workspace.Workspace
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
	return s.Session.Prompt(ctx, params, u)
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
	c := connect(t, acp.Options{Backend: using(r)}.With(acp.Tuning{MaxSessions: 3}))
	c.initialize()
	a := folder(t)
	id, other := c.open(a), c.open(a)
	c.texts(id, "say one")
	turn, line := c.request("session/prompt", promptParams(other, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
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
	r, log := &panicking{}, &logtest.Text{}
	c := connect(t, acp.Options{Backend: using(r), Logger: log.Logger(slog.LevelDebug)})
	c.initialize()
	a := folder(t)
	id, other := c.open(a), c.open(a)
	r.cancelling.Store(true)
	for _, cancel := range []func(prompt string) string{
		func(prompt string) string {
			return notification("$/cancel_request", `{"requestId":`+prompt+`}`)
		},
		func(string) string { return notification("session/cancel", idParams(id)) },
	} {
		before := len(c.messages())
		prompt, line := c.request("session/prompt", promptParams(id, "wait"))
		c.send(line)
		c.await(before, said("waiting"))
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

// Clause W8.
func TestPanicIsLogged(t *testing.T) {
	log := &logtest.Text{}
	c := connect(t, acp.Options{Logger: log.Logger(slog.LevelDebug)})
	c.initialize()
	id := c.open(folder(t))
	require.Equal(t, jsonrpc.CodeInternal,
		c.try("session/prompt", promptParams(id, "panic")).Error.Code)
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
		err := acp.Serve(t.Context(), io.NopCloser(bytes.NewReader(input)), &out, acp.Options{
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
