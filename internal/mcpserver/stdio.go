package mcpserver

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Serve serves one client that writes lines to in and reads them from out, until in ends or ctx does. Calls that were
// read before are answered, within the grace. A line that is no message gets an error and ends nothing (M12). It
// returns nil at the end of in or of ctx, which closes in if that can be closed. What may go on after it is a read from an in
// that does not end, and a write to an out that nobody reads.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	l := newLines(out, s.log, s.options.MaxMessage)
	defer l.close()
	old, now := newPort(l, s.options.MaxPending), newPort(l, s.options.MaxPending)
	asked := &client{server: s, ask: atOnce}
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for _, era := range []struct {
		port   *port
		client *client
	}{{old, asked}, {now, &client{server: s}}} {
		session, err := s.forClient(era.client).Connect(ctx, era.port, nil)
		if err != nil {
			return errors.Join(err, old.Close(), now.Close())
		}
		sessions.Go(func() { _ = session.Wait() })
	}
	ended := make(chan error, 1)
	go func() { ended <- l.read(in, router{old: old, now: now}) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		if c, ok := in.(io.Closer); ok {
			err = c.Close()
		}
	}
	asked.gone()
	s.drain(old, now)
	l.close()
	return errors.Join(err, old.Close(), now.Close(), l.failure())
}

// drain waits until all calls are answered, at most for the grace.
func (s *Server) drain(ports ...*port) {
	late := time.NewTimer(s.options.EndGrace)
	defer late.Stop()
	for _, p := range ports {
		select {
		case <-p.idle():
		case <-late.C:
			return
		}
	}
}

var _ mcp.Transport = (*port)(nil)
