package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/secret"
	"github.com/acp-agent/acp-agent/internal/text"
)

// pipe is one stream of a child.
type pipe struct{ read, write *os.File }

// pipes are the three streams of a child.
type pipes struct{ stdin, stdout, stderr pipe }

func newPipes() (pipes, error) {
	var p pipes
	var errs [3]error
	p.stdin.read, p.stdin.write, errs[0] = os.Pipe()
	p.stdout.read, p.stdout.write, errs[1] = os.Pipe()
	p.stderr.read, p.stderr.write, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.closeChildEnds()
		p.closeOurEnds()
		return pipes{}, err
	}
	return p, nil
}

// childEnds returns the streams as the child sees them.
func (p pipes) childEnds() stdio { return stdio{p.stdin.read, p.stdout.write, p.stderr.write} }

// closeChildEnds closes the ends that the child has inherited. Closing a nil file does nothing.
func (p pipes) closeChildEnds() {
	_ = p.stdin.read.Close()
	_ = p.stdout.write.Close()
	_ = p.stderr.write.Close()
}

func (p pipes) closeOurEnds() {
	_ = p.stdin.write.Close()
	_ = p.stdout.read.Close()
	_ = p.stderr.read.Close()
}

const (
	// drainTime is how long a read waits for more after the child has ended. The kernel's buffer is
	// read at once; anything later comes from a process that left the group with our pipe.
	drainTime = 100 * time.Millisecond
	// maxDrainTime is how long all these reads take together, as such a process may write again and
	// again.
	maxDrainTime = time.Second
	// drainBytes is how much is read after the child has ended: the most a pipe can hold that an
	// unprivileged user has enlarged. Anything more was written by another process.
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

// stderrLog copies a child's stderr to a logger. Reading and logging each have a goroutine, so that
// a logger that blocks does not block the child.
type stderrLog struct {
	logger  *slog.Logger
	secrets *secret.Scrubber
	maxLine int

	lines   chan string
	dropped atomic.Int64
	recent  []stderrLine  // the last lines; may be read once read is closed
	read    chan struct{} // closed when stderr has been read to its end
	logged  chan struct{} // closed when everything has been logged
}

func newStderrLog(o Options, name string, pid int) *stderrLog {
	const maxQueued = 256 // lines that wait for a slow logger before more are dropped
	return &stderrLog{
		logger:  o.Logger.With("child", name, "pid", pid),
		secrets: o.Secrets,
		maxLine: o.MaxLogLine,
		lines:   make(chan string, maxQueued),
		read:    make(chan struct{}),
		logged:  make(chan struct{}),
	}
}

// start copies r until it ends, and closes it.
func (s *stderrLog) start(r io.ReadCloser) {
	go s.readLines(r)
	go s.logLines()
}

// wait waits until everything has been read and logged. It waits for a logger that blocks only for
// grace.
func (s *stderrLog) wait(grace time.Duration) {
	<-s.read
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.logged:
	case <-timer.C:
	}
}

// stderrLine is a line of stderr that is not blank.
type stderrLine struct {
	text string
	read time.Time
}

// maxRecent is the number of lines that are kept to explain how the child ended.
const maxRecent = 30

// keep adds a line to the recent ones.
func (s *stderrLog) keep(text string) {
	if len(s.recent) == maxRecent {
		s.recent = s.recent[1:]
	}
	s.recent = append(s.recent, stderrLine{text, time.Now()})
}

// errorLine matches a line that looks like the message of an error. An indented line is code or a
// stack frame.
const errorLine = `(?i)^(|\S|\S.*[^\w/.-])\w*` +
	`(error|exception|panic|panicked|fatal|uncaught)\b|^npm ERR!`

// explanation returns the lines that explain why a child ended whose stderr ended in recent: the
// first that looks like an error and what follows it, or the last line. Lines that were written a
// while before the last one are older messages.
func explanation(recent []stderrLine) []string {
	const (
		maxLines = 5
		maxBytes = 300 // of a line
		burst    = time.Second
	)
	if len(recent) == 0 {
		return nil
	}
	last := len(recent) - 1
	isError := regexp.MustCompile(errorLine)
	first := slices.IndexFunc(recent, func(l stderrLine) bool {
		return recent[last].read.Sub(l.read) < burst && isError.MatchString(l.text)
	})
	if first < 0 {
		first = last
	}
	var lines []string
	for _, l := range recent[first:min(first+maxLines, len(recent))] {
		lines = append(lines, text.Plain(text.Truncate(l.text, maxBytes)))
	}
	return lines
}

func (s *stderrLog) readLines(r io.ReadCloser) {
	defer close(s.read)
	defer close(s.lines)
	defer r.Close()
	in := bufio.NewReaderSize(r, s.maxLine)
	for {
		line, err := in.ReadSlice('\n')
		s.add(line, err == bufio.ErrBufferFull)
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// add queues a line for the logger, or drops it if too many are queued.
func (s *stderrLog) add(line []byte, truncated bool) {
	line = bytes.TrimRightFunc(line, unicode.IsSpace)
	if len(line) == 0 {
		return
	}
	text := string(line)
	if truncated {
		text = s.secrets.Start(text) + "…"
	} else {
		text = s.secrets.Text(text)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	s.keep(text)
	select {
	case s.lines <- text:
	default:
		s.dropped.Add(1)
	}
}

func (s *stderrLog) logLines() {
	defer close(s.logged)
	ctx := context.Background()
	for line := range s.lines {
		s.logger.Log(ctx, slog.LevelInfo, line)
		if n := s.dropped.Swap(0); n > 0 {
			s.logger.Warn("dropped lines of a child's stderr: the log is too slow", "lines", n)
		}
	}
}
