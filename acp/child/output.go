package child

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// drain is how long a read waits for more once the child has ended. The kernel's buffer is
// read at once; what takes longer comes from a process that left the group with our pipe.
const drain = 100 * time.Millisecond

// output is the read end of one of the child's streams. It ends with the child even if
// a process that escaped the group still holds the other end.
type output struct {
	file  *os.File
	ended atomic.Bool
}

// Read returns what the child wrote, and io.EOF after the last of it.
func (o *output) Read(p []byte) (int, error) {
	for {
		bounded := o.ended.Load()
		if bounded {
			// Where pipes have no deadlines the job object has ended every writer.
			_ = o.file.SetReadDeadline(time.Now().Add(drain))
		}
		n, err := o.file.Read(p)
		switch {
		case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case bounded:
			return 0, io.EOF
		}
	}
}

// Close frees the stream. Reads fail from then on.
func (o *output) Close() error { return o.file.Close() }

// end says that the child has ended, and wakes a reader that waits.
func (o *output) end() {
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Now().Add(drain))
}
