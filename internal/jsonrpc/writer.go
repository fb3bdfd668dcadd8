package jsonrpc

import (
	"context"
	"io"
	"sync"
)

// Writer writes lines on a goroutine of its own, so that a peer that does not read holds up nobody for longer than their
// context. It is safe for concurrent use.
type Writer struct {
	out     io.Writer
	then    func()
	lines   chan line
	once    sync.Once
	ended   chan struct{}
	err     error // set before ended is closed
	writing sync.WaitGroup
}

// line is one to be written.
type line struct {
	text    []byte
	written chan struct{} // closed when it was
}

// NewWriter writes to out until End, or until a write fails. Then it calls then once, if that is not nil: to close out
// ends a write that blocks.
func NewWriter(out io.Writer, then func()) *Writer {
	w := &Writer{out: out, then: then, lines: make(chan line), ended: make(chan struct{})}
	w.writing.Go(w.run)
	return w
}

func (w *Writer) run() {
	for {
		select {
		case l := <-w.lines:
			if _, err := w.out.Write(l.text); err != nil {
				w.End(err)
				return
			}
			close(l.written)
		case <-w.ended:
			return
		}
	}
}

// Write writes a message, which is the writer's from then on, and the end of its line, and waits until that is done. The
// error is why the writer ended, or the cause of ctx: the line may then still be written, whole.
func (w *Writer) Write(ctx context.Context, message []byte) error {
	l := line{append(message, '\n'), make(chan struct{})}
	select {
	case w.lines <- l:
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-l.written:
		return nil
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// End has every Write fail with err from now on, unless the writer has ended before. It waits for nothing.
func (w *Writer) End(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.ended)
		if w.then != nil {
			w.then()
		}
	})
}

// Ended is closed when the writer has ended.
func (w *Writer) Ended() <-chan struct{} { return w.ended }

// Err is why the writer has ended, nil while it has not.
func (w *Writer) Err() error {
	select {
	case <-w.ended:
		return w.err
	default:
		return nil
	}
}

// Wait waits until nothing is written any more. That is after End, when out does not block.
func (w *Writer) Wait() { w.writing.Wait() }
