package mcprelay

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// maxOwn is how many messages of the relay's own wait for a peer that does not read.
const maxOwn = 1024

// writer writes lines to one peer: those of the other peer, which waits, and the relay's own, for which nobody does. Two
// peers that both write and do not read can so not have the relay wait for itself.
type writer struct {
	own     chan []byte
	most    int          // bytes of own
	waiting atomic.Int64 // bytes of own
	warned  sync.Once

	mu     sync.Mutex
	out    io.Writer
	within bool // a line is not ended
}

func newWriter(out io.Writer, most int) *writer {
	return &writer{out: out, most: most, own: make(chan []byte, maxOwn)}
}

// pass writes what the other peer sent.
func (w *writer) pass(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(line)
}

// passLong writes the beginning of a line, and the rest of it as it is read.
func (w *writer) passLong(beginning []byte, from *jsonrpc.Reader) (reading, writing error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for part := beginning; ; {
		if err := w.write(part); err != nil {
			return nil, err
		}
		if !w.within {
			return nil, nil
		}
		if part, reading = from.Part(); reading != nil {
			return reading, w.write(part)
		}
	}
}

// write writes all of a line. The caller holds mu.
func (w *writer) write(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	w.within = line[len(line)-1] != '\n'
	_, err := w.out.Write(line)
	return err
}

// send has a message of the relay's own written. It does not wait, and reports whether there was room.
func (w *writer) send(message []byte) bool {
	size := int64(len(message))
	if before := w.waiting.Add(size) - size; before == 0 || before+size <= int64(w.most) {
		select {
		case w.own <- message:
			return true
		default:
		}
	}
	w.waiting.Add(-size)
	return false
}

// run writes the relay's own messages, until done is closed or a write fails.
func (w *writer) run(done <-chan struct{}) {
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

func (w *writer) writeOwn(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.waiting.Add(-int64(len(message)))
	line := make([]byte, 0, len(message)+2)
	if w.within {
		line = append(line, '\n')
	}
	line = append(line, message...)
	return w.write(append(line, '\n'))
}
