package jsonrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestW5_AcceptIsInArrivalOrder(t *testing.T) {
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

func TestW5_ACancelRightBehindItsRequestIsNeverLost(t *testing.T) {
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

func TestW5_WhatIsSentAfterTheResponseFollowsIt(t *testing.T) {
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

func TestW1_ConcurrentSendersWriteWholeLinesInTheirOrder(t *testing.T) {
	const senders, each = 16, 200
	var tapped []string
	p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 2000, Tap: func(d jsonrpc.Direction, line []byte) {
		if d == jsonrpc.Sent {
			tapped = append(tapped, string(line))
		}
	}})
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				// White space between tokens may hold line breaks.
				params := fmt.Sprintf("{\n\t\"sender\": %d,\r\n \"n\": %d, \"text\": \"a\\nb\"}\n", s, i)
				if err := p.conn.Notify(t.Context(), "note", json.RawMessage(params)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var lines []string
	var next [senders]int
	for range senders * each {
		line := p.line()
		lines = append(lines, line)
		var m struct {
			JSONRPC, Method string
			Params          struct {
				Sender, N int
				Text      string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), line)
		require.NotContains(t, line, "\r")
		require.Equal(t, "2.0", m.JSONRPC)
		require.Equal(t, "a\nb", m.Params.Text)
		require.Equal(t, next[m.Params.Sender], m.Params.N, "sender %d", m.Params.Sender)
		next[m.Params.Sender]++
	}
	all.Wait()
	require.NoError(t, p.end())
	require.Equal(t, lines, tapped)
}

func TestTapSeesEveryLine(t *testing.T) {
	type seen struct {
		direction jsonrpc.Direction
		line      string
	}
	var mu sync.Mutex
	var all []seen
	serveAll(t, strings.NewReader("nonsense\n\n"+`{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\r\n"), &responder{},
		jsonrpc.Options{Tap: func(d jsonrpc.Direction, line []byte) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, seen{d, string(line)})
		}})
	require.ElementsMatch(t, []seen{
		{jsonrpc.Received, `nonsense`},
		{jsonrpc.Received, `{"jsonrpc":"2.0","id":1,"method":"echo"}`},
		{jsonrpc.Sent, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"malformed JSON at byte 1"}}`},
		{jsonrpc.Sent, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	}, all)
}
