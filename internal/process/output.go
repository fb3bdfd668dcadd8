package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// drain is how long a read waits for more once the child has ended. The kernel's buffer is
// read at once; what takes longer comes from a process that left the group with our pipe.
const drain = 100 * time.Millisecond

// mostLeft is the most bytes that a pipe holds, where it was made as large as users may. What comes after the child has ended
// and these were read is by somebody else.
const mostLeft = 1 << 20

// output is the read end of one of the child's streams. It ends with the child even if
// a process that escaped the group still holds the other end. Once closed it is still emptied, so
// that the child neither waits for a reader nor dies of a broken pipe.
type output struct {
	file    *os.File
	reading sync.Mutex // held by a read
	late    int        // bytes read since the child has ended, by whoever reads

	mu         sync.Mutex // held by Close and end
	closed     atomic.Bool
	ended      atomic.Bool
	discarding sync.WaitGroup
}

// Read returns what the child wrote, and io.EOF after the last of it.
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

// read is one read. It returns nothing at all if it was woken.
func (o *output) read(p []byte) (int, error) {
	bounded := o.ended.Load()
	if bounded {
		// Where pipes have no deadlines the job object has ended every writer.
		_ = o.file.SetReadDeadline(time.Now().Add(drain))
	}
	if o.late > mostLeft {
		return 0, io.EOF
	}
	n, err := o.file.Read(p)
	if bounded {
		o.late += n
	}
	switch {
	case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
		return n, err
	case bounded:
		return 0, io.EOF
	}
	return 0, nil
}

// Close makes reads fail. What the child still writes is discarded.
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

// discard reads until the child has ended, and frees the stream.
func (o *output) discard() {
	defer o.file.Close()
	o.reading.Lock() // the reader that Close woke has left then, and no other comes
	_ = o.file.SetReadDeadline(time.Time{})
	o.reading.Unlock()
	for buffer := make([]byte, 4<<10); ; {
		if _, err := o.read(buffer); err != nil {
			return
		}
	}
}

// end says that the child has ended, wakes a reader that waits, and waits until what was to be
// discarded is.
func (o *output) end() {
	o.mu.Lock()
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Now().Add(drain))
	o.mu.Unlock()
	o.discarding.Wait()
}
