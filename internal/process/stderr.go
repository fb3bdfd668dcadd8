package process

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// waitingLines is how many lines wait for a slow logger before more are dropped.
const waitingLines = 256

// stderrLog copies a child's stderr to a logger. Reading and logging have a goroutine each, so
// that a logger that blocks never blocks the child.
type stderrLog struct {
	logger  *slog.Logger
	level   slog.Level
	maxLine int

	lines   chan string
	dropped atomic.Int64
	last    atomic.Pointer[string]
	read    chan struct{} // closed when stderr was read to its end
	logged  chan struct{} // closed when all of it was logged
}

func newStderrLog(o Options, name string, pid int) *stderrLog {
	return &stderrLog{
		logger:  o.Logger.With("child", name, "pid", pid),
		level:   o.Level,
		maxLine: o.MaxLogLine,
		lines:   make(chan string, waitingLines),
		read:    make(chan struct{}),
		logged:  make(chan struct{}),
	}
}

// start copies r until it ends, and closes it.
func (s *stderrLog) start(r io.ReadCloser) {
	go s.readLines(r)
	go s.logLines()
}

// wait returns once everything was read and logged. A logger that blocks is waited for
// only as long as grace.
func (s *stderrLog) wait(grace time.Duration) {
	<-s.read
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.logged:
	case <-timer.C:
	}
}

// lastLine is the last line that is not blank, cut to what fits an error's text.
func (s *stderrLog) lastLine() string {
	const most = 300
	p := s.last.Load()
	if p == nil {
		return ""
	}
	if len(*p) > most {
		return strings.ToValidUTF8((*p)[:most], "") + "…"
	}
	return *p
}

func (s *stderrLog) readLines(r io.ReadCloser) {
	defer close(s.read)
	defer close(s.lines)
	defer r.Close()
	in := bufio.NewReaderSize(r, s.maxLine)
	for {
		line, err := in.ReadSlice('\n')
		s.take(line, err == bufio.ErrBufferFull)
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func (s *stderrLog) take(line []byte, cut bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if cut {
		text += "…"
	}
	s.last.Store(&text)
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
		s.logger.Log(ctx, s.level, line)
		if n := s.dropped.Swap(0); n > 0 {
			s.logger.Warn("lines of a child's stderr were dropped: the log is too slow", "lines", n)
		}
	}
}
