package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// Valid JSON that we do not read is not called malformed, and who sent a request learns that it was
// his.
//
// Clause W2.
func TestMessagesThatAreNotRead(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 5_001) + strings.Repeat("]}", 5_001)
	many := strings.Repeat(`"x":1,`, 10_001)
	const levels = "the message has more than 10,000 levels of objects and arrays"
	for name, c := range map[string]struct{ line, id, message string }{
		"deep params": {`{"jsonrpc":"2.0","id":1,"method":"echo","params":` + deep + `}`, "1", levels},
		"id at the end": {`{"params":` + deep + `,"method":"echo","jsonrpc":"2.0","id":"\"]}\\"}`,
			`"\"]}\\"`, levels},
		"deep id":    {`{"jsonrpc":"2.0","id":` + deep + `,"method":"echo"}`, "null", levels},
		"deep batch": {`[` + deep + `]`, "null", levels},
		"two ids":    {`{"id":1,"method":"echo","params":` + deep + `,"id":2}`, "null", levels},
		"response":   {`{"jsonrpc":"2.0","id":1,"result":` + deep + `}`, "null", levels},
		"many members": {`{"jsonrpc":"2.0","id":5,"method":"echo",` + many + `"y":1}`, "5",
			"an object has more than 10000 members"},
	} {
		t.Run("W2/"+name, func(t *testing.T) {
			got := serveAll(t, strings.NewReader(c.line+"\n"), &responder{}, jsonrpc.Options{})
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":` + c.id +
				`,"error":{"code":-32600,"message":"` + c.message + `"}}`}, got)
		})
	}
	t.Run("W2/a response that our call waits for", func(t *testing.T) {
		h := &responder{}
		p := serve(t, h, jsonrpc.Options{})
		h.conn = p.conn
		p.send(`{"jsonrpc":"2.0","id":"a","method":"ask"}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"question"}`, p.line())
		p.send(`{"jsonrpc":"2.0","id":1,"result":` + deep + `}`)
		require.Contains(t, p.line(), levels)
		require.Contains(t, p.line(), "the peer's response is malformed")
	})
}

// Clause W9.
func TestEndOfContext(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"finish"}`, `{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, p.line())
	p.cancel()
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"cause":"connection closed"}}`+"\n", p.rest())
	require.NoError(t, receive(t, p.served))
	_, err := p.in.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe, "the input was closed")
}

// Clause W9.
func TestNotificationsPrecedeTheLastResponse(t *testing.T) {
	var conn *jsonrpc.Conn
	p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) {
			_ = conn.TryNotify("started", nil)
			<-ctx.Done()
			return json.RawMessage(`{"stopReason":"cancelled"}`), conn.Notify(context.Background(), "last", nil)
		}
	}), jsonrpc.Options{})
	conn = p.conn
	p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	require.Equal(t, `{"jsonrpc":"2.0","method":"started"}`, p.line())
	p.in.Close()
	require.Equal(t, `{"jsonrpc":"2.0","method":"last"}`+"\n"+`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`+"\n", p.rest())
}

// Clause W9.
func TestCallsEndWithTheConnection(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	work := p.conn.Call(t.Context(), "question", nil)
	p.line()
	require.NoError(t, p.end())
	_, err := work()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)

	_, err = p.conn.Call(t.Context(), "question", nil)()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
	require.ErrorIs(t, p.conn.Notify(t.Context(), "note", nil), jsonrpc.ErrClosed)
	require.ErrorIs(t, p.conn.TryNotify("note", nil), jsonrpc.ErrClosed)
}

// Clause W9.
func TestStuckWorkIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		followed := false
		p := serve(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
			r.AfterResponse(func() { followed = true })
			return func() (json.RawMessage, error) { <-stuck; return nil, nil }
		}), jsonrpc.Options{Grace: time.Second}.WithLimits(1, 0, 0))
		p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":2,"method":"x"}`)
		synctest.Wait()
		start := time.Now()
		p.cancel()
		require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"the connection closed"}}`+"\n"+
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the connection closed before the request was finished"}}`+"\n", p.rest())
		require.NoError(t, receive(t, p.served))
		require.LessOrEqual(t, time.Since(start), time.Second) // of the bubble's clock
		close(stuck)
		synctest.Wait()
		require.True(t, followed, "who waits for the end of the request hears of it")
	})
}

// Clause W9.
func TestStuckAcceptIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p := serve(t, jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work {
			<-stuck
			return nil
		}), jsonrpc.Options{})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		synctest.Wait()
		p.cancel()
		require.Contains(t, p.rest(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,`)
		require.NoError(t, receive(t, p.served))
		close(stuck)
	})
}

// Clause W9.
func TestPeerThatDoesNotReadIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{Grace: time.Second})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		start := time.Now()
		p.in.Close()
		require.NoError(t, receive(t, p.served))
		require.Equal(t, time.Second, time.Since(start)) // of the bubble's clock
	})
}

// Clause W9.
func TestStuckStreamDoesNotBlockServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, peer := io.Pipe()
		out, back := io.Pipe()
		conn := jsonrpc.NewConn(jsonrpc.NewLines(struct{ io.Reader }{in}, struct{ io.Writer }{back}, 0), &responder{}, jsonrpc.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- conn.Serve(ctx) }()
		require.NoError(t, conn.TryNotify("nobody reads this", nil))
		synctest.Wait()
		cancel()
		require.NoError(t, <-served)
		peer.Close() // the goroutines that were left in Read and Write
		out.Close()
	})
}

// Clause W9.
func TestOutputError(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	work := p.conn.Call(t.Context(), "question", nil)
	broken := errors.New("broken pipe")
	p.out.CloseWithError(broken)
	require.ErrorIs(t, receive(t, p.served), broken)
	_, err := work()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
}

// stopping is a transport whose Read has a last message when it is stopped.
type stopping struct {
	jsonrpc.Transport
	stopped chan struct{}
	last    string
}

func (s *stopping) Read() ([]byte, error) {
	<-s.stopped
	last := s.last
	s.last = ""
	if last == "" {
		return nil, io.EOF
	}
	return []byte(last), nil
}

func (s *stopping) StopRead() bool {
	close(s.stopped)
	return true
}

// A message that was read when the connection is ended is answered, so that none is lost between
// what was answered and what the peer knows was not read.
//
// Clause W9.
func TestLastMessageIsAnswered(t *testing.T) {
	var out output
	conn := jsonrpc.NewConn(&stopping{
		Transport: jsonrpc.NewLines(strings.NewReader(""), &out, 0), stopped: make(chan struct{}),
		last: `{"jsonrpc":"2.0","id":7,"method":"finish"}`,
	}, &responder{}, jsonrpc.Options{})
	ctx, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, conn.Serve(ctx))
	require.Contains(t, string(out.take()), `"id":7,"result"`)
}

// Clause W9.
func TestInputError(t *testing.T) {
	broken := errors.New("reset")
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"finish"}`)
	p.in.CloseWithError(broken)
	require.Contains(t, p.rest(), `"id":1,"result"`)
	require.ErrorIs(t, receive(t, p.served), broken)
}

// Clause W9.
func TestNothingIsReadBeforeServe(t *testing.T) {
	in, peer := io.Pipe()
	defer peer.Close()
	var out output
	conn := jsonrpc.NewConn(jsonrpc.NewLines(in, &out, 0), &responder{}, jsonrpc.Options{})
	require.NoError(t, conn.TryNotify("early", nil))
	work := conn.Call(t.Context(), "question", nil)
	require.Empty(t, out.take())
	go func() {
		_, _ = io.WriteString(peer, `{"jsonrpc":"2.0","id":1,"result":true}`+"\n")
		peer.Close()
	}()
	require.NoError(t, conn.Serve(t.Context()))
	result, err := work()
	require.NoError(t, err)
	require.Equal(t, `true`, string(result))
	require.Equal(t, `{"jsonrpc":"2.0","method":"early"}`+"\n"+`{"jsonrpc":"2.0","id":1,"method":"question"}`+"\n", string(out.take()))
}

var kilobyte = json.RawMessage(`["` + strings.Repeat("x", 1000) + `"]`)

// Clause W11.
func TestNotifyWaitsForSlowPeer(t *testing.T) {
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

// Clause W11.
func TestTryNotifyFailsOverTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 10_000})
		require.Nil(t, p.conn.Room())
		taken := 0
		for ; ; taken++ {
			if err := p.conn.TryNotify("note", kilobyte); err != nil {
				require.ErrorIs(t, err, jsonrpc.ErrQueueFull)
				break
			}
			require.Equal(t, taken >= 9, p.conn.Full() != nil)
			require.NotNil(t, p.conn.Room(), "a notification would wait")
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

// Clause W11.
func TestCancellationIsSentOverTheLimit(t *testing.T) {
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

// Clause W11.
func TestUnansweredRequestsAreBounded(t *testing.T) {
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

// Clause W11.
func TestCancelIsReadAtTheBound(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{}.WithLimits(1, 0, 0))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	require.Contains(t, p.line(), `"id":1,"error":{"code":-32800`)
	require.Contains(t, p.line(), `"id":2,"result"`)
	require.NoError(t, p.end())
}

// Clause W11.
func TestRejectionsAreBounded(t *testing.T) {
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

// Clause W11.
func TestNotificationsWithWorkAreBounded(t *testing.T) {
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

// What Accept has taken for a notification is given back, also if the connection ends first.
//
// Clause W9.
func TestWorkOfANotificationAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepted, called atomic.Int64
		p := serve(t, jsonrpc.HandlerFunc(func(ctx context.Context, _ *jsonrpc.Request) jsonrpc.Work {
			accepted.Add(1)
			return func() (json.RawMessage, error) {
				<-ctx.Done()
				called.Add(1)
				return nil, nil
			}
		}), jsonrpc.Options{}.WithLimits(1, 0, 0))
		p.send(`{"jsonrpc":"2.0","method":"one"}`, `{"jsonrpc":"2.0","method":"two"}`)
		synctest.Wait()
		require.EqualValues(t, 2, accepted.Load())
		p.cancel()
		require.NoError(t, <-p.served)
		require.EqualValues(t, 2, called.Load())
	})
}

// Clause W11.
func TestUnansweredBytesAreBounded(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{}.WithLimits(0, 100, 0))
	request := func(id, method string, length int) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":["` + strings.Repeat("x", length) + `"]}`
	}
	p.send(request("1", "wait", 1000))
	p.send(request("2", "echo", 1))
	require.Contains(t, p.line(), `"id":2,"error":{"code":-32603,"message":"the request has 9 bytes, and 1008 bytes of others are not finished (limit 100)`)
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Contains(t, p.line(), `"id":1,"error"`, "reading goes on")
	p.send(request("1", "wait", 45))
	for range 3 {
		p.send(request("3", "echo", 35))
		require.Contains(t, p.line(), `"id":3,"result"`)
	}
	p.send(request("4", "echo", 60))
	require.Contains(t, p.line(), `"id":4,"error"`)
	p.send(request("5", strings.Repeat("x", 100), 1))
	require.Contains(t, p.line(), `"id":5,"error":{"code":-32603,"message":"the request has`, "the method counts, too")
}

// What is ignored in a message does not stay in memory while the request runs.
//
// Clause W11.
func TestRunningRequestsDoNotKeepTheirLines(t *testing.T) {
	const requests, ignored = 32, 512 << 10
	p := serve(t, &responder{}, jsonrpc.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	junk := strings.Repeat("x", ignored)
	for i := range requests {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"wait","params":{"n":1},"ignored":"%s"}`, i, junk))
	}
	p.send(`{"jsonrpc":"2.0","id":"last","method":"echo"}`)
	require.Contains(t, p.line(), "last")
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(requests*ignored/4))
}

// A long message does not stay in memory once it is answered, although the connection goes on.
//
// Clause W3.
func TestAnsweredRequestsAreNotKept(t *testing.T) {
	const length = 8 << 20
	p := serve(t, &responder{}, jsonrpc.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"echo","params":["` + strings.Repeat("x", length) + `"]}`)
	require.Greater(t, len(p.line()), length)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	p.line()
	require.Eventually(t, func() bool {
		runtime.GC()
		runtime.ReadMemStats(&after)
		return int64(after.HeapAlloc)-int64(before.HeapAlloc) < length/4
	}, patience, 10*time.Millisecond)
}

// A peer that sends requests and does not read could fill the memory with their responses.
//
// Clause W11.
func TestUnsentBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 1000}.WithLimits(0, 10_000, 0))
		const total = 50
		go func() {
			for i := range total {
				fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":%s}`+"\n", i, kilobyte)
			}
		}()
		synctest.Wait()
		results := 0
		for range total {
			line := p.line()
			if strings.Contains(line, `"result"`) {
				results++
			} else {
				require.Regexp(t, `"error":{"code":-32603,"message":"(the response was dropped because too many others are unread|the request has)`, line)
			}
		}
		require.InDelta(t, 10, results, 3)
		p.send(`{"jsonrpc":"2.0","id":"last","method":"echo","params":` + string(kilobyte) + `}`)
		require.Contains(t, p.line(), `"result"`, "all is well again")
		require.NoError(t, p.end())
	})
}

// Errors say what is wrong without repeating all that the peer sent.
//
// Clause W11.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	p := serve(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
		return func() (json.RawMessage, error) {
			if r.Method == "ours" {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%q is not absolute", long)
			}
			return nil, fmt.Errorf("open %s: no such file", long)
		}
	}), jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ours"}`)
	line := p.line()
	require.Contains(t, line, `x\" is not absolute"`)
	require.Less(t, len(line), 5000)
	p.send(`{"jsonrpc":"2.0","id":2,"method":"another"}`)
	line = p.line()
	require.Contains(t, line, `"message":"open xxx`)
	require.Contains(t, line, `x: no such file"`)
	require.Less(t, len(line), 5000)
	p.send(`{"jsonrpc":"2.0","id":"` + long + `","method":"ours"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id is longer than 1 KiB"}}`, p.line())
	p.send(`{"jsonrpc":"2.0","id":"` + long[:1022] + `","method":"ours"}`)
	require.Contains(t, p.line(), long[:1022])
	require.NoError(t, p.end())
}

// Clause W3.
func TestLongLineIsNotBuffered(t *testing.T) {
	const length = 64 << 20
	in := io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo","params":["`),
		io.LimitReader(endless{}, length),
		strings.NewReader("\"]}\n"+`{"jsonrpc":"2.0","id":2,"method":"echo"}`+"\n"))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := serveLimited(t, in, 1<<20)
	runtime.ReadMemStats(&after)

	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the message is longer than the limit of 1048576 bytes"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{}}`,
	}, lines)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(length/4))
}

// Clause W3.
func TestIDOfALongLine(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct{ line, id string }{
		"request":                       {`{"jsonrpc":"2.0","id":7,"method":"echo","params":["` + long + `"]}`, `7`},
		"string id, last":               {` { "method" : "echo" , "params":{"id":1}, "id" : "a\u0062", "_meta":"` + long + `"}`, `"a\u0062"`},
		"id before a long method":       {`{"id":-8,"method":"` + long + `"}`, `-8`},
		"id after long params":          {`{"method":"echo","params":["` + long + `"],"id":7}`, `null`},
		"notification":                  {`{"jsonrpc":"2.0","method":"echo","params":["` + long + `"]}`, `null`},
		"response without a call":       {`{"jsonrpc":"2.0","id":7,"result":["` + long + `"]}`, `null`},
		"neither request nor response":  {`{"jsonrpc":"2.0","id":7,"other":["` + long + `"]}`, `null`},
		"both a request and a response": {`{"id":7,"method":"echo","result":"` + long + `"}`, `null`},
		"two ids":                       {`{"id":7,"id":8,"method":"echo","params":["` + long + `"]}`, `null`},
		"long id":                       {`{"id":"` + long[:1023] + `","method":"echo","params":["` + long + `"]}`, `null`},
		"id of another type":            {`{"id":[7],"method":"echo","params":["` + long + `"]}`, `null`},
		"invalid UTF-8":                 {`{"id":"` + "\xff" + `","method":"echo","params":["` + long + `"]}`, `null`},
		"no JSON":                       {`{id:7,"method":"echo"` + long, `null`},
		"no object":                     {`[{"id":7,"method":"echo","params":["` + long + `"]}]`, `null`},
	} {
		t.Run("W3/"+name, func(t *testing.T) {
			require.Equal(t, []string{`{"jsonrpc":"2.0","id":` + c.id + `,"error":{"code":-32600,"message":"the message is longer than the limit of 5000 bytes"}}`},
				serveLimited(t, strings.NewReader(c.line), 5000))
		})
	}
}

// Clause W3.
func TestLongResponseFailsItsCall(t *testing.T) {
	var log output
	h := &responder{}
	p := servePeer(t, 2000, h, jsonrpc.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	h.conn = p.conn
	p.send(`{"jsonrpc":"2.0","id":"a","method":"ask"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"question"}`, p.line())
	p.send(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 100_000) + `"}`)
	got := []string{p.line(), p.line()}
	slices.Sort(got)
	require.Equal(t, []string{
		`{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"the peer's response is longer than the limit of 2000 bytes"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than the limit of 2000 bytes"}}`,
	}, got)
	require.NoError(t, p.end())
	require.Contains(t, string(log.take()), "rejected a message over the limit")
}

// Clause W2.
func TestOpaqueParams(t *testing.T) {
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`},
		serveAll(t, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1,"a":2}}`), &responder{},
			jsonrpc.Options{OpaqueParams: true}))
}

// Clause W1.
func TestConcurrentSenders(t *testing.T) {
	const senders, each = 16, 200
	var tapped []string
	p := serve(t, &responder{}, jsonrpc.Options{MaxQueue: 2000, Tap: func(sent bool, line []byte) {
		if sent {
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

func TestTap(t *testing.T) {
	type seen struct {
		sent bool
		line string
	}
	var mu sync.Mutex
	var all []seen
	serveAll(t, strings.NewReader("nonsense\n\n"+`{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\r\n"), &responder{},
		jsonrpc.Options{Tap: func(sent bool, line []byte) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, seen{sent, string(line)})
		}})
	require.ElementsMatch(t, []seen{
		{false, `nonsense`},
		{false, `{"jsonrpc":"2.0","id":1,"method":"echo"}`},
		{true, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"malformed JSON at byte 1"}}`},
		{true, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	}, all)
}

// A large payload is not copied, and written in one piece with what surrounds it.
func TestLargePayloads(t *testing.T) {
	large := `{"text":"` + strings.Repeat("x", 200<<10) + `"}`
	broken := "{\n\"text\":\"" + strings.Repeat("x", 200<<10) + "\"}"
	var out bytes.Buffer
	in, end := io.Pipe()
	var mu sync.Mutex
	var tapped []string
	conn := jsonrpc.NewConn(jsonrpc.NewLines(in, &out, 0), &responder{}, jsonrpc.Options{
		Grace: time.Minute, // however busy the machine is, all is written
		Tap: func(_ bool, m []byte) {
			mu.Lock()
			defer mu.Unlock()
			tapped = append(tapped, string(m))
		},
	})
	for _, params := range []string{`{"a":1}`, large, `{"b":2}`, broken, large, large, `{}`} {
		require.NoError(t, conn.ForceNotify("m", json.RawMessage(params)))
	}
	require.NoError(t, end.Close())
	require.NoError(t, conn.Serve(t.Context()))
	var want []string
	for _, params := range []string{
		`{"a":1}`, large, `{"b":2}`, strings.Replace(broken, "\n", " ", 1), large, large, `{}`,
	} {
		want = append(want, `{"jsonrpc":"2.0","method":"m","params":`+params+`}`)
	}
	require.Equal(t, strings.Join(want, "\n")+"\n", out.String())
	require.Equal(t, want, tapped)
}

// counted is a Budget of some bytes.
type counted struct {
	mu   sync.Mutex
	left int
}

func (b *counted) Reserve(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *counted) Release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// Unanswered requests have a budget together with other connections, and give it back.
//
// Clause N6.
func TestBudgetOfRequests(t *testing.T) {
	t.Parallel()
	b := &counted{left: 1000}
	p := serve(t, &responder{}, jsonrpc.Options{Budget: b})
	large := `{"x":"` + strings.Repeat("x", 600) + `"}`
	request := func(id, method string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + large + `}`
	}
	p.send(request("1", "wait"), request("2", "wait"))
	require.Contains(t, p.line(), `"id":2,"error":{"code":-32603,"message":"the request has 612 bytes`)
	p.send(`{"jsonrpc":"2.0","id":3,"method":"echo","params":{}}`)
	require.Contains(t, p.line(), `"id":3,"result"`)
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	require.Contains(t, p.line(), `"id":1,"error"`)
	p.send(request("4", "echo"))
	require.Contains(t, p.line(), `"id":4,"result"`)
	p.send(request("5", "wait"))
	require.NoError(t, p.in.Close())
	require.Contains(t, p.rest(), `"id":5,"error"`)
	require.NoError(t, p.end())
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, 1000, b.left)
}
