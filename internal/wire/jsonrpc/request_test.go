package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Clause W5.
func TestAcceptOrder(t *testing.T) {
	var in strings.Builder
	var want, got []string
	for i := range 1000 {
		if i%3 == 0 {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","method":"n%d"}`+"\n", i)
		} else {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"n%d"}`+"\n", i, i)
		}
		want = append(want, fmt.Sprintf("n%d", i))
	}
	lines := serveAll(t, strings.NewReader(in.String()), jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
		got = append(got, r.Method) // without a lock: Accept is one at a time
		return func() (json.RawMessage, error) { runtime.Gosched(); return nil, nil }
	}), jsonrpc.Options{})
	require.Equal(t, want, got)
	require.Len(t, lines, 666)
}

// Clause W5.
func TestCancelDirectlyAfterRequest(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	const times = 1000
	go func() {
		for i := range times {
			// Both lines in one write.
			fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"wait"}
{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}
`, i, i)
		}
	}()
	for range times {
		require.Contains(t, p.line(), `"error":{"code":-32800`)
	}
	require.NoError(t, p.end())
}

// Clause W5.
func TestAfterResponse(t *testing.T) {
	var conn *jsonrpc.Conn
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		r.AfterResponse(func() { _ = conn.TryNotify("first", nil) })
		r.AfterResponse(func() { panic("in the way") })
		r.AfterResponse(func() { _ = conn.Notify(ctx, "second", nil) })
		return func() (json.RawMessage, error) { return nil, conn.Notify(ctx, "before", nil) }
	}), jsonrpc.Options{})
	conn = p.conn
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	require.Equal(t, `{"jsonrpc":"2.0","method":"before"}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","method":"first"}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","method":"second"}`, p.line())
	require.NoError(t, p.end())
}

// Clause W5.
func TestBeforeResponse(t *testing.T) {
	const limit = 1 << 10
	var state atomic.Value
	writing, goOn, worked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	p := serve(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
		if r.Method != "decided" {
			return func() (json.RawMessage, error) { return r.Params, nil }
		}
		r.BeforeResponse(func(result json.RawMessage, err error) (json.RawMessage, error) {
			if state.Load() == "panic" {
				panic("in decide")
			}
			return json.RawMessage(`["` + state.Load().(string) + `",` + string(result) + `]`), err
		})
		return func() (json.RawMessage, error) {
			close(worked)
			return json.RawMessage(`"worked"`), nil
		}
	}), jsonrpc.Options{MaxQueue: limit, Tap: func(sent bool, line []byte) {
		if sent && len(line) > limit {
			writing <- struct{}{}
			<-goOn
		}
	}})
	full := `{"jsonrpc":"2.0","id":1,"method":"echo","params":["` + strings.Repeat("x", limit) + `"]}`
	decided := `{"jsonrpc":"2.0","id":2,"method":"decided"}`
	state.Store("too early")
	p.send(full)
	<-writing
	p.send(decided)
	<-worked
	state.Store("in time")
	goOn <- struct{}{}
	require.Contains(t, p.line(), "xxx")
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":["in time","worked"]}`, p.line())

	state.Store("panic")
	worked = make(chan struct{})
	p.send(decided)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"internal error"}}`, p.line())
	require.NoError(t, p.end())
}

// Clause W8.
func TestPanic(t *testing.T) {
	for _, method := range []string{"panic", "panic in accept"} {
		t.Run("W8/"+method, func(t *testing.T) {
			var log bytes.Buffer
			lines := serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":["secret"]}`), &responder{},
				jsonrpc.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`}, lines)
			var entry struct{ Level, Method, Stack string }
			require.NoError(t, json.Unmarshal(log.Bytes(), &entry))
			require.Equal(t, "ERROR", entry.Level)
			require.Equal(t, method, entry.Method)
			require.Contains(t, entry.Stack, "responder")
			require.NotContains(t, log.String(), "secret")
		})
	}
}

// Clause W8.
func TestRuntimeErrorIsLogged(t *testing.T) {
	var log bytes.Buffer
	serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
		var none *jsonrpc.Request
		_ = none.Method
		return nil
	}), jsonrpc.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Contains(t, log.String(), "nil pointer dereference")
}

// Clause W8.
func TestGoexit(t *testing.T) {
	lines := serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) { runtime.Goexit(); return nil, nil }
	}), jsonrpc.Options{})
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`}, lines)
}

// Clause W6.
func TestCancelledRequestIsAnsweredAsCancelled(t *testing.T) {
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) {
			<-ctx.Done()
			return nil, jsonrpc.Errorf(-32000, "aborted")
		}
	}), jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"request cancelled"}}`, p.line())
	require.NoError(t, p.end())
}

func TestRequestContextEndsWithTheResponse(t *testing.T) {
	contexts := make(chan context.Context, 1)
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		contexts <- ctx
		return func() (json.RawMessage, error) { return nil, nil }
	}), jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	p.line()
	receive(t, receive(t, contexts).Done())
	require.NoError(t, p.end())
}
