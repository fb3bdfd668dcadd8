package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestW9_EndOfInputAnswersWhatWasReadBefore(t *testing.T) {
	lines := serveAll(t, strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"wait"}`,
		`{"jsonrpc":"2.0","id":2,"method":"finish"}`,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`,
		`{"jsonrpc":"2.0","id":4`,
	}, "\n")), &responder{}, jsonrpc.Options{})
	require.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"the connection closed"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"cause":"connection closed"}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"method not found: no/such"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"malformed JSON at byte 23"}}`,
	}, lines)
}

func TestW9_TheContextOfServeEndsLikeTheInput(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"finish"}`, `{"jsonrpc":"2.0","id":2,"method":"echo"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, p.line())
	p.cancel()
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"cause":"connection closed"}}`+"\n", p.rest())
	require.NoError(t, receive(t, p.served))
	_, err := p.in.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe, "the input was closed")
}

func TestW9_NotificationsOfRunningWorkPrecedeItsLastAnswer(t *testing.T) {
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

func TestW9_CallsOfOursEndWithTheConnection(t *testing.T) {
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
	require.Error(t, p.conn.Serve(t.Context()), "twice")
}

func TestW9_WorkThatDoesNotEndIsAnsweredForAndLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		followed := false
		p := serve(t, jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) jsonrpc.Work {
			r.AfterResponse(func() { followed = true })
			return func() (json.RawMessage, error) { <-stuck; return nil, nil }
		}), jsonrpc.Options{Grace: time.Second})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		start := time.Now()
		p.in.Close()
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the connection closed before the request was finished"}}`+"\n", p.rest())
		require.NoError(t, receive(t, p.served))
		require.LessOrEqual(t, time.Since(start), time.Second) // of the bubble's clock
		close(stuck)
		synctest.Wait()
		require.True(t, followed, "who waits for the end of the request hears of it")
	})
}

func TestW9_AnAcceptThatDoesNotEndIsAnsweredForToo(t *testing.T) {
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

func TestW9_APeerThatDoesNotReadIsLeftAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &responder{}, jsonrpc.Options{Grace: time.Second})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		start := time.Now()
		p.in.Close()
		require.NoError(t, receive(t, p.served))
		require.Equal(t, time.Second, time.Since(start)) // of the bubble's clock
	})
}

func TestW9_AStreamThatCannotBeClosedDoesNotHoldServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, peer := io.Pipe()
		out, back := io.Pipe()
		conn := jsonrpc.NewConn(struct{ io.Reader }{in}, struct{ io.Writer }{back}, &responder{}, jsonrpc.Options{})
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

func TestW9_ABrokenOutputEndsTheConnection(t *testing.T) {
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)
	work := p.conn.Call(t.Context(), "question", nil)
	broken := errors.New("broken pipe")
	p.out.CloseWithError(broken)
	require.ErrorIs(t, receive(t, p.served), broken)
	_, err := work()
	require.ErrorIs(t, err, jsonrpc.ErrClosed)
}

func TestW9_ABrokenInputIsReported(t *testing.T) {
	broken := errors.New("reset")
	p := serve(t, &responder{}, jsonrpc.Options{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"finish"}`)
	p.in.CloseWithError(broken)
	require.Contains(t, p.rest(), `"id":1,"result"`)
	require.ErrorIs(t, receive(t, p.served), broken)
}

func TestW9_NothingIsReadBeforeServe(t *testing.T) {
	in, peer := io.Pipe()
	defer peer.Close()
	var out output
	conn := jsonrpc.NewConn(in, &out, &responder{}, jsonrpc.Options{})
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
