package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

var kilobyte = json.RawMessage(`["` + strings.Repeat("x", 1000) + `"]`)

func TestW11_NotifyWaitsForAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 64_000})
		const total = 500
		var sent atomic.Int64
		done := make(chan error, 1)
		go func() {
			for range total {
				if err := p.conn.Notify(t.Context(), "note", kilobyte); err != nil {
					done <- err
					return
				}
				sent.Add(1)
			}
			done <- nil
		}()
		synctest.Wait()
		require.Less(t, sent.Load(), int64(10), "a small part of the queue")

		// Others still have room, and a waiter gives up with its context.
		require.NoError(t, p.conn.TryNotify("post", nil))
		ctx, cancel := context.WithCancelCause(t.Context())
		waiting := make(chan error, 1)
		go func() { waiting <- p.conn.Notify(ctx, "never", nil) }()
		synctest.Wait()
		cause := errors.New("enough")
		cancel(cause)
		require.ErrorIs(t, <-waiting, cause)

		for range total + 1 {
			require.NotContains(t, p.line(), "never")
		}
		require.NoError(t, <-done)
		require.NoError(t, p.end())
	})
}

func TestW11_WhatCannotWaitIsRefusedOverTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 10_000})
		taken := 0
		for ; ; taken++ {
			if err := p.conn.TryNotify("note", kilobyte); err != nil {
				require.ErrorIs(t, err, jsonrpc.ErrQueueFull)
				break
			}
		}
		require.InDelta(t, 10, taken, 1)
		_, err := p.conn.Call(t.Context(), "question", nil)()
		require.ErrorIs(t, err, jsonrpc.ErrQueueFull)

		// Responses wait, and cancels of the peer are processed meanwhile.
		p.send(`{"jsonrpc":"2.0","id":"a","method":"echo"}`, `nonsense`, `{"jsonrpc":"2.0","id":"b","method":"wait"}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"b"}}`)
		synctest.Wait()

		p.in.Close()
		rest := p.rest()
		require.Contains(t, rest, `{"jsonrpc":"2.0","id":"a","result":{}}`)
		require.Contains(t, rest, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`)
		require.Contains(t, rest, `{"jsonrpc":"2.0","id":"b","error":{"code":-32800`)
		require.NoError(t, receive(t, p.served))
	})
}

func TestW11_ACancellationOfOursIsSentThoughTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 10_000})
		ctx, cancel := context.WithCancel(t.Context())
		work := p.conn.Call(ctx, "slow", nil)
		for p.conn.TryNotify("note", kilobyte) == nil {
		}
		cancel()
		_, err := work()
		require.ErrorIs(t, err, context.Canceled)
		p.in.Close()
		require.Contains(t, p.rest(), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	})
}

func TestW11_ReadingStopsAtTheBoundOfUnansweredRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepted atomic.Int64
		h := &responder{}
		p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
			accepted.Add(1)
			return h.Accept(ctx, r)
		}), jsonrpc.Options{}.WithLimits(3, 0, 0))
		go func() {
			for i := range 10 {
				fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"finish"}`+"\n", i)
			}
		}()
		synctest.Wait()
		require.EqualValues(t, 3, accepted.Load())
		p.cancel()
		// The fourth was read too, and is answered.
		rest := p.rest()
		require.Equal(t, 4, strings.Count(rest, "\n"), rest)
		require.EqualValues(t, 3, accepted.Load())
		p.out.Close()
		require.NoError(t, receive(t, p.served))
	})
}

func TestW11_CancelsArePassedAtTheBound(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{}.WithLimits(1, 0, 0))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	require.Contains(t, p.line(), `"id":1,"error":{"code":-32800`)
	require.Contains(t, p.line(), `"id":2,"result"`)
	require.NoError(t, p.end())
}

func TestW11_RefusalsAreBoundedLikeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 100}.WithLimits(3, 0, 0))
		var sent atomic.Int64
		const total = 50
		go func() {
			for range total {
				fmt.Fprintln(p.in, "nonsense")
				sent.Add(1)
			}
		}()
		synctest.Wait()
		require.Less(t, sent.Load(), int64(12))
		for range total {
			require.Contains(t, p.line(), "-32700")
		}
		require.NoError(t, p.end())
	})
}

func TestW11_NotificationsWithWorkAreBoundedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		release := make(chan struct{})
		p := serve(t, jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
			return func() (json.RawMessage, error) {
				running.Add(1)
				<-release
				return nil, errors.New("nobody is told")
			}
		}), jsonrpc.Options{}.WithLimits(3, 0, 0))
		go func() {
			for range 10 {
				fmt.Fprintln(p.in, `{"jsonrpc":"2.0","method":"note"}`)
			}
			p.in.Close()
		}()
		synctest.Wait()
		require.EqualValues(t, 3, running.Load())
		close(release)
		require.Empty(t, p.rest())
		require.EqualValues(t, 10, running.Load())
	})
}

func TestW11_RequestsThatAreTooLongTogetherAreRefused(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{}.WithLimits(0, 100, 0))
	request := func(id, method string, length int) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":["` + strings.Repeat("x", length) + `"]}`
	}
	p.send(request("1", "wait", 1000))
	p.send(request("2", "echo", 1))
	require.Contains(t, p.line(), `"id":2,"error":{"code":-32603,"message":"the unanswered requests have 1004 bytes of params and this one has 5, over the limit of 100`)
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Contains(t, p.line(), `"id":1,"error"`, "reading goes on")
	p.send(request("1", "wait", 50))
	for range 3 {
		p.send(request("3", "echo", 40))
		require.Contains(t, p.line(), `"id":3,"result"`)
	}
	p.send(request("4", "echo", 60))
	require.Contains(t, p.line(), `"id":4,"error"`)
}
