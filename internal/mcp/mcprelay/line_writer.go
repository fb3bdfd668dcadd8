package mcprelay

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

const (
	// maxQueued bounds the number of our own messages to a peer that does not read, and
	// maxQueuedBytes their size. The message that reaches maxQueuedBytes may exceed it.
	maxQueued      = 1024
	maxQueuedBytes = 4 << 20
	// maxKeptBuffer is the largest line buffer that is reused.
	maxKeptBuffer = 1 << 20
)

// lineWriter writes lines to one peer. The other peer's lines are written directly, so that it
// waits. Our own lines are queued, so that two peers that write without reading cannot block the
// relay.
type lineWriter struct {
	own      chan []byte
	ownBytes atomic.Int64 // queued in own

	mu  sync.Mutex
	out io.Writer
}

func newLineWriter(out io.Writer) *lineWriter {
	return &lineWriter{out: out, own: make(chan []byte, maxQueued)}
}

// copyLines passes on what edit returns for each line, or nothing if that is nil. tooLong gets the
// beginning of each line that is too long, which is not passed on. The errors are nil at the end of
// in.
func copyLines(
	to *lineWriter, in *jsonrpc.Reader, edit func(line []byte) []byte,
	tooLong func(beginning []byte),
) (readErr, writeErr error) {
	var line []byte
	for readErr == nil && writeErr == nil {
		if cap(line) > maxKeptBuffer {
			line = nil
		}
		line, readErr = in.Append(line[:0])
		if _, long := errors.AsType[*jsonrpc.TooLongError](readErr); long {
			tooLong(line)
			readErr = nil
		} else if readErr == nil {
			writeErr = to.writeEdited(line, edit)
		}
	}
	if errors.Is(readErr, io.EOF) {
		readErr = nil
	}
	return readErr, writeErr
}

// writeEdited edits and writes a line. Messages that edit queues are written after it.
func (w *lineWriter) writeEdited(line []byte, edit func([]byte) []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line = edit(line); len(line) == 0 {
		return nil
	}
	_, err := w.out.Write(line)
	return err
}

// queue queues one of our own messages, without waiting for it to be written. It returns false if
// too many messages or bytes are queued.
func (w *lineWriter) queue(message []byte) bool {
	size := int64(len(message))
	if w.ownBytes.Add(size)-size < maxQueuedBytes {
		select {
		case w.own <- message:
			return true
		default:
		}
	}
	w.ownBytes.Add(-size)
	return false
}

// writeQueued writes queued messages until done is closed or a write fails.
func (w *lineWriter) writeQueued(done <-chan struct{}) {
	for {
		select {
		case message := <-w.own:
			if w.writeOwn(message) != nil {
				return
			}
		case <-done:
			return
		}
	}
}

// writeOwn writes a queued message.
func (w *lineWriter) writeOwn(message []byte) error {
	defer w.ownBytes.Add(-int64(len(message)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(slices.Clip(message), '\n'))
	return err
}
