package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// pipes are the ends of a child's streams: of its input, its output and its errors.
type pipes struct{ child, ours [3]*os.File }

func newPipes() (p pipes, err error) {
	var errs [3]error
	p.child[0], p.ours[0], errs[0] = os.Pipe()
	p.ours[1], p.child[1], errs[1] = os.Pipe()
	p.ours[2], p.child[2], errs[2] = os.Pipe()
	if err = errors.Join(errs[:]...); err != nil {
		closeAll(p.child)
		closeAll(p.ours)
	}
	return p, err
}

// closeAll closes files. Closing a nil file does nothing.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

const (
	// drainTime is how long a read waits for more after the child has ended. The kernel's buffer is
	// read at once. Later output comes from a process that left the group and still has our pipe.
	drainTime = 100 * time.Millisecond
	// maxDrainTime is how long all these reads may take together, because such a process may write
	// again and again.
	maxDrainTime = time.Second
	// drainBytes limits the bytes that are read after the child has ended: the largest capacity
	// that an unprivileged user can give a pipe. Any further bytes were written by another process.
	drainBytes = 1 << 20
)

// output is the read end of one of the child's streams. It ends with the child even if a process
// that left the group still holds the other end. After Close it is still drained, so that the child
// neither blocks nor dies of a broken pipe.
type output struct {
	file    *os.File
	reading sync.Mutex    // held while reading
	late    int           // bytes read since the child ended; guarded by reading
	drained time.Duration // how long reading them took; guarded by reading

	mu         sync.Mutex // held by Close and end
	closed     atomic.Bool
	ended      atomic.Bool
	discarding sync.WaitGroup
}

// Read reads what the child wrote, and returns io.EOF after the last of it.
func (o *output) Read(p []byte) (int, error) {
	o.reading.Lock()
	defer o.reading.Unlock()
	for !o.closed.Load() {
		if n, err := o.read(p); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, os.ErrClosed
}

// read reads once. It returns 0, nil if a deadline interrupted it.
func (o *output) read(p []byte) (int, error) {
	ended, start := o.ended.Load(), time.Now()
	if ended {
		// Where pipes do not support deadlines, the job object has already ended every writer.
		_ = o.file.SetReadDeadline(start.Add(drainTime))
	}
	if o.late > drainBytes || o.drained > maxDrainTime {
		return 0, io.EOF
	}
	n, err := o.file.Read(p)
	if ended {
		o.late += n
		o.drained += time.Since(start)
	}
	switch {
	case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
		return n, err
	case ended:
		return 0, io.EOF
	}
	return 0, nil
}

// Close makes reads fail. Later output of the child is discarded.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed.Swap(true) {
		return os.ErrClosed
	}
	if o.ended.Load() {
		return o.file.Close()
	}
	_ = o.file.SetReadDeadline(time.Now())
	o.discarding.Go(o.discard)
	return nil
}

// discard reads until the child has ended, and closes the file.
func (o *output) discard() {
	defer o.file.Close()
	o.reading.Lock() // wait for the reader that Close interrupted
	_ = o.file.SetReadDeadline(time.Time{})
	o.reading.Unlock()
	for buffer := make([]byte, 4<<10); ; {
		if _, err := o.read(buffer); err != nil {
			return
		}
	}
}

// end records that the child has ended, interrupts a waiting reader, and waits until discard is
// done.
func (o *output) end() {
	o.mu.Lock()
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Now().Add(drainTime))
	o.mu.Unlock()
	o.discarding.Wait()
}
