package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

func TestCall(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	first := p.conn.Call(t.Context(), "a", nil)
	second := p.conn.Call(t.Context(), "b", json.RawMessage(`[1]`))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"a"}`, p.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"b","params":[1]}`, p.line())
	p.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":[1, 2]}}`, `{"jsonrpc":"2.0","id":1,"result":{"x" : 1}}`)
	result, err := first()
	require.NoError(t, err)
	require.Equal(t, `{"x" : 1}`, string(result))
	_, err = second()
	var peers *jsonrpc.Error
	require.ErrorAs(t, err, &peers)
	require.Equal(t, &jsonrpc.Error{Code: -5, Message: "no", Data: json.RawMessage(`[1, 2]`)}, peers)
	require.Equal(t, "no (-5)", err.Error())
	require.NoError(t, p.end())
}

// Clause W6.
func TestCallIsCancelledWithItsContext(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	work := p.conn.Call(ctx, "slow", nil)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"slow"}`, p.line())
	cancel(cause)
	_, err := work()
	require.ErrorIs(t, err, cause)
	require.Equal(t, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, p.line())

	_, err = p.conn.Call(ctx, "too late", nil)()
	require.ErrorIs(t, err, cause)

	// The late response is ignored, and nothing was sent for the second call.
	p.send(`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":7,"method":"echo"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{}}`, p.line())
	require.NoError(t, p.end())
}

// log records the events of a connection's read loop in order.
type log struct{ seen chan string }

func (l log) Accept(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
	l.seen <- r.Method
	return nil
}

func (l log) answered(result json.RawMessage, err error) {
	if err != nil {
		l.seen <- "answered: " + err.Error()
		return
	}
	l.seen <- "answered: " + string(result)
}

// Clause P6.
func TestCallFuncOrder(t *testing.T) {
	l := log{make(chan string, 10)}
	p := serve(t, l, jsonrpc.Options{})
	work := p.conn.CallFunc(t.Context(), "a", nil, l.answered)
	refused := p.conn.CallFunc(t.Context(), "b", nil, l.answered)
	p.line()
	p.line()
	p.send(`{"jsonrpc":"2.0","method":"before"}`, `{"jsonrpc":"2.0","id":1,"result":{"x" : 1}}`, `{"jsonrpc":"2.0","method":"between"}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no"}}`, `{"jsonrpc":"2.0","method":"behind"}`)
	for _, want := range []string{"before", `answered: {"x" : 1}`, "between", "answered: no (1)", "behind"} {
		require.Equal(t, want, receive(t, l.seen))
	}
	result, err := work()
	require.NoError(t, err)
	require.Equal(t, `{"x" : 1}`, string(result))
	_, err = refused()
	require.Error(t, err)
	require.NoError(t, p.end())
}

// Clause W4.
// JavaScript leaves out a result that is undefined, and other programs always send both members.
func TestCallFunc_membersThatAreMissing(t *testing.T) {
	for response, want := range map[string]string{
		``:                                 "null",
		`,"result":null`:                   "null",
		`,"error":null`:                    "null",
		`,"result":null,"error":null`:      "null",
		`,"result":{"a":1},"error":null`:   `{"a":1}`,
		`,"result":7,"error":{}`:           "the peer's response is malformed",
		`,"error":"no"`:                    "the peer's response is malformed",
		`,"result":{"a":"` + "\xff" + `"}`: "the peer's response is malformed",
		`,"result":{"a":`:                  "the peer's response is malformed",
		`,"result":null,"error":{"code":1,"message":"no"}`: "no (1)",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := log{make(chan string, 10)}
			p := serve(t, l, jsonrpc.Options{})
			p.conn.CallFunc(t.Context(), "a", nil, l.answered)
			p.line()
			p.send(`{"jsonrpc":"2.0","id":1` + response + `}`)
			require.Equal(t, "answered: "+want, receive(t, l.seen), response)
			_ = p.end()
		})
	}
}

func TestCallFunc_lateResponse(t *testing.T) {
	l := log{make(chan string, 10)}
	p := serve(t, l, jsonrpc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	work := p.conn.CallFunc(ctx, "a", nil, l.answered)
	p.line()
	cancel()
	_, err := work()
	require.ErrorIs(t, err, context.Canceled)
	p.line() // $/cancel_request
	p.send(`{"jsonrpc":"2.0","id":1,"result":7}`, `{"jsonrpc":"2.0","id":1,"result":8}`, `{"jsonrpc":"2.0","method":"behind"}`)
	require.Equal(t, "answered: 7", receive(t, l.seen))
	require.Equal(t, "behind", receive(t, l.seen))
	require.NoError(t, p.end())
}

// Clause W11.
func TestAbandonedCallsAreBounded(t *testing.T) {
	for _, c := range []struct{ limit, kept int }{{3, 3}, {0, 1000}} { // as set, and by default
		synctest.Test(t, func(t *testing.T) {
			l := log{make(chan string, 2*c.kept+10)}
			p := serve(t, l, jsonrpc.Options{}.WithLimits(0, 0, c.limit))
			give := func(method string) {
				ctx, cancel := context.WithCancel(t.Context())
				work := p.conn.CallFunc(ctx, method, nil, l.answered)
				p.line()
				cancel()
				_, err := work()
				require.ErrorIs(t, err, context.Canceled)
				p.line() // $/cancel_request
			}
			answer := func(id int) { p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%[1]d}`, id)) }
			give("first")
			waited := p.conn.CallFunc(t.Context(), "second", nil, l.answered)
			p.line()
			for range c.kept {
				give("later")
			}
			answer(1)
			answer(2)
			require.Equal(t, "answered: 2", receive(t, l.seen), "the first is forgotten, one that is waited for is not")
			_, err := waited()
			require.NoError(t, err)

			answer(3)
			require.Equal(t, "answered: 3", receive(t, l.seen))
			give("one in the place of an answered one")
			answer(4)
			require.Equal(t, "answered: 4", receive(t, l.seen))
			answer(c.kept + 3)
			require.Equal(t, fmt.Sprint("answered: ", c.kept+3), receive(t, l.seen))
			require.NoError(t, p.end())
			require.Empty(t, l.seen)
		})
	}
}

func TestCallFunc_closedConnection(t *testing.T) {
	l := log{make(chan string, 10)}
	p := serve(t, l, jsonrpc.Options{MaxQueue: 1})
	ctx, cancel := context.WithCancel(t.Context())
	given := p.conn.CallFunc(ctx, "a", nil, l.answered)
	full := p.conn.CallFunc(t.Context(), "b", nil, l.answered)
	_, err := full()
	require.ErrorIs(t, err, jsonrpc.ErrQueueFull)
	require.ErrorIs(t, p.conn.TryNotify("c", nil), jsonrpc.ErrQueueFull)
	require.NoError(t, p.conn.ForceNotify("d", nil))
	p.line()
	require.Contains(t, p.line(), `"method":"d"`)
	cancel()
	_, err = given()
	require.ErrorIs(t, err, context.Canceled)
	p.line() // $/cancel_request
	require.NoError(t, p.end())
	require.ErrorIs(t, p.conn.ForceNotify("e", nil), jsonrpc.ErrClosed)
	_, err = p.conn.CallFunc(t.Context(), "f", nil, l.answered)()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
	require.Empty(t, l.seen)
}

func TestAnswered(t *testing.T) {
	contexts := make(chan context.Context, 2)
	var p *peer
	h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		contexts <- ctx
		return func() (json.RawMessage, error) {
			if r.Method == "fails" {
				return nil, errors.New("no")
			}
			return nil, nil
		}
	})
	p = serve(t, h, jsonrpc.Options{})
	require.Nil(t, jsonrpc.Answered(t.Context()))
	for _, method := range []string{"works", "fails"} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		ctx, cancel := context.WithCancel(context.WithoutCancel(receive(t, contexts)))
		cancel()
		answered := jsonrpc.Answered(ctx)
		followed := make(chan struct{})
		go func() {
			defer close(followed)
			<-answered
			_ = p.conn.Notify(context.Background(), "followed", nil)
		}()
		require.True(t, strings.HasPrefix(p.line(), `{"jsonrpc":"2.0","id":1,`))
		require.Contains(t, p.line(), "followed")
		receive(t, followed)
	}
	require.NoError(t, p.end())
}
