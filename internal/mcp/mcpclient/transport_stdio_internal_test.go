package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

// discard is an output that discards everything.
type discard struct{ io.Writer }

func (discard) Close() error { return nil }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// FuzzStdioTransport checks that a connection survives whatever a server writes, and ends.
func FuzzStdioTransport(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "hello\n", `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` + "\n", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":null}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress"}` + "\r\n", "[{}]\n", `{"jsonrpc":"2.0","id":{},"result":1}` + "\n", "\x00\xff{\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, written []byte) {
		const limit = 256
		l := newStdioTransport(newInbox(limits{MaxMessage: limit}, quiet(), nil), io.NopCloser(bytes.NewReader(written)), discard{io.Discard})
		defer l.writer.Wait()
		messages := 0
		for {
			m, err := l.Read(context.Background())
			if err != nil {
				var long *limitError
				if !errors.Is(err, io.EOF) && !errors.As(err, &long) {
					t.Fatal(err)
				}
				break
			}
			messages++
			if _, err := jsonrpc.EncodeMessage(m); err != nil {
				t.Fatalf("%q: %v", written, err)
			}
		}
		if shortest := len(`{"method":""}`); messages > len(written)/shortest {
			t.Fatalf("%d messages in %d bytes", messages, len(written))
		}
	})
}

func TestWriteEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe() // never read
	l := newStdioTransport(newInbox(limits{MaxMessage: 1 << 20}, quiet(), nil), io.NopCloser(bytes.NewReader(nil)), w)
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 2)
	m := &jsonrpc.Request{Method: "ping", Params: json.RawMessage(`{}`)}
	for range 2 {
		go func() { failed <- l.Write(ctx, m) }()
	}
	cause := errors.New("given up")
	cancel(cause)
	require.ErrorIs(t, <-failed, cause)
	require.ErrorIs(t, <-failed, cause)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Write(t.Context(), m), io.EOF)
	require.NoError(t, r.Close())
	l.writer.Wait()
}

// A call that the server has not read in its time ends the connection, and so the calls behind it.
func TestServerStopsReading(t *testing.T) {
	unread, out := io.Pipe() // never read
	silent, _ := io.Pipe()
	l := newStdioTransport(newInbox(limits{MaxMessage: 1 << 20}, quiet(), nil), silent, out)
	defer unread.Close()
	m := &jsonrpc.Request{Method: "tools/call", Params: json.RawMessage(`{}`)}
	waiting := make(chan error, 4)
	for range 3 {
		go func() { waiting <- l.Write(t.Context(), m) }()
	}
	go func() {
		_, err := l.Read(t.Context())
		waiting <- err
	}()
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded, errEndedInCall} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.ErrorIs(t, l.Write(ctx, m), cause)
		require.NoError(t, l.writer.Err(), "it may be busy")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&lateError{errors.New("late"), time.Minute})
	require.EqualError(t, l.Write(ctx, m), "late")
	for range 4 {
		require.EqualError(t, <-waiting, "it has not read a call within 1m0s")
	}
	l.writer.Wait()
}
