package jsonrpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

var updateParams = json.RawMessage(`{"sessionId":"sess_0123456789abcdef","update":{"sessionUpdate":"agent_message_chunk",` +
	`"content":{"type":"text","text":"a chunk of a message, with a few words in it, as a model streams them"}}}`)

// BenchmarkNotify sends notifications through a pipe of the operating system.
func BenchmarkNotify(b *testing.B) {
	in, closeIn := io.Pipe()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	conn := jsonrpc.NewConn(jsonrpc.NewLines(in, w, 0), &responder{}, jsonrpc.Options{})
	served := make(chan error, 1)
	go func() { served <- conn.Serve(context.Background()); w.Close() }()
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, r); close(drained) }()
	b.SetBytes(int64(len(updateParams)))
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.Notify(context.Background(), "session/update", updateParams); err != nil {
			b.Fatal(err)
		}
	}
	closeIn.Close()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
	<-drained
	r.Close()
}

// BenchmarkReceive receives notifications.
func BenchmarkReceive(b *testing.B) {
	for name, opaque := range map[string]bool{"strict": false, "opaque": true} {
		b.Run(name, func(b *testing.B) {
			line := append(append([]byte(`{"jsonrpc":"2.0","method":"session/update","params":`), updateParams...), '}', '\n')
			in := &repeat{line: line, left: b.N}
			conn := jsonrpc.NewConn(jsonrpc.NewLines(in, io.Discard, 0), jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) jsonrpc.Work { return nil }),
				jsonrpc.Options{OpaqueParams: opaque})
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			b.ResetTimer()
			if err := conn.Serve(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkEcho sends one request at a time through pipes of the operating system and waits for its
// response.
func BenchmarkEcho(b *testing.B) {
	inR, inW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	conn := jsonrpc.NewConn(jsonrpc.NewLines(inR, outW, 0), &responder{}, jsonrpc.Options{})
	served := make(chan error, 1)
	go func() { served <- conn.Serve(context.Background()) }()
	request := append(append([]byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":`), updateParams...), '}', '\n')
	lines := bufio.NewReader(outR)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := inW.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	inW.Close()
	if err := <-served; err != nil {
		b.Fatal(err)
	}
	for _, f := range []*os.File{inR, outR, outW} {
		f.Close()
	}
}

// repeat reads the same line many times.
type repeat struct {
	line []byte
	left int
	rest []byte
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			if r.left == 0 {
				break
			}
			r.left--
			r.rest = r.line
		}
		c := copy(p[n:], r.rest)
		r.rest = r.rest[c:]
		n += c
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
