package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/acp-agent/acp-agent/internal/test/volume"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// patience bounds how long a test waits before it fails.
const patience = volume.Patience

// peer is the other side of a connection. It reads and writes lines.
type peer struct {
	t      *testing.T
	conn   *jsonrpc.Conn
	in     *io.PipeWriter
	out    *io.PipeReader
	lines  *bufio.Reader
	served chan error
	cancel context.CancelFunc
}

// serve serves a connection with h until the test ends.
func serve(t *testing.T, h jsonrpc.Handler, o jsonrpc.Options) *peer {
	t.Helper()
	return servePeer(t, 0, h, o)
}

// servePeer is serve for a peer that may send lines of up to maxLine bytes.
func servePeer(t *testing.T, maxLine int, h jsonrpc.Handler, o jsonrpc.Options) *peer {
	t.Helper()
	inReader, inWriter := io.Pipe()
	outReader, outWriter := io.Pipe()
	p := &peer{
		t: t, in: inWriter, out: outReader,
		conn:   jsonrpc.NewConn(jsonrpc.NewLines(inReader, outWriter, maxLine), h, o),
		lines:  bufio.NewReader(outReader),
		served: make(chan error, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		err := p.conn.Serve(ctx)
		outWriter.Close()
		p.served <- err
	}()
	t.Cleanup(func() {
		cancel()
		outReader.Close()
		inWriter.Close()
	})
	return p
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		_, err := io.WriteString(p.in, line+"\n")
		require.NoError(p.t, err)
	}
}

// line returns the next line that the connection wrote.
func (p *peer) line() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	require.NoError(p.t, err)
	return line[:len(line)-1]
}

// rest returns what the connection writes until it ends.
func (p *peer) rest() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.lines)
	require.NoError(p.t, err)
	return string(rest)
}

// end closes the input and waits for Serve.
func (p *peer) end() error {
	p.t.Helper()
	p.in.Close()
	return receive(p.t, p.served)
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// responder is a handler with a method for each kind of response.
type responder struct{ conn *jsonrpc.Conn }

func (h *responder) Accept(ctx context.Context, r *jsonrpc.Request) jsonrpc.Work {
	switch r.Method {
	case "echo":
		return func() (json.RawMessage, error) { return r.Params, nil }
	case "wait":
		return func() (json.RawMessage, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("waiting: %w", ctx.Err())
		}
	case "finish": // waits, and has a valid result all the same
		return func() (json.RawMessage, error) {
			<-ctx.Done()
			return json.RawMessage(`{"cause":"` + context.Cause(ctx).Error() + `"}`), nil
		}
	case "fail":
		return func() (json.RawMessage, error) { return nil, errors.New("it did not work") }
	case "error":
		return func() (json.RawMessage, error) {
			return nil, fmt.Errorf("wrapped: %w", &jsonrpc.Error{Code: -32002, Message: "no such thing", Data: json.RawMessage("{\"a\":\n1}")})
		}
	case "violate":
		return func() (json.RawMessage, error) {
			return nil, fmt.Errorf("params: %w", strictjson.Refuse(strictjson.NewViolation("cwd", "x", strictjson.Relative)))
		}
	case "panic":
		return func() (json.RawMessage, error) { panic("secret " + string(r.Params)) }
	case "panic in accept":
		panic(errors.New("secret"))
	case "pretty":
		return func() (json.RawMessage, error) { return json.RawMessage("{\r\n  \"a\": [\n1]\n}"), nil }
	case "ask":
		return h.conn.Call(ctx, "question", r.Params)
	case "after":
		r.AfterResponse(func() { _ = h.conn.Notify(ctx, "followed", nil) })
		return func() (json.RawMessage, error) { return nil, nil }
	default:
		return nil
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveAll serves in to its end and returns the output lines.
func serveAll(t testing.TB, in io.Reader, h jsonrpc.Handler, o jsonrpc.Options) []string {
	t.Helper()
	return serveLines(t, in, 0, h, o)
}

// serveLimited is serveAll with a limit for lines.
func serveLimited(t testing.TB, in io.Reader, maxLine int) []string {
	t.Helper()
	return serveLines(t, in, maxLine, &responder{}, jsonrpc.Options{})
}

func serveLines(t testing.TB, in io.Reader, maxLine int, h jsonrpc.Handler, o jsonrpc.Options) []string {
	t.Helper()
	var out output
	lines := jsonrpc.NewLines(in, &out, maxLine)
	require.NoError(t, jsonrpc.NewConn(lines, h, o).Serve(context.Background()))
	return strings.Split(strings.TrimSuffix(string(out.take()), "\n"), "\n")
}

// endless is a stream of x.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// output collects the written bytes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := bytes.Clone(o.buf.Bytes())
	o.buf.Reset()
	return taken
}
