package process

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/text/secret"
)

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

// wait waits until everything has been read and logged. It waits for a logger that blocks only for
// grace.
func (s *stderrLog) wait(grace time.Duration) {
	<-s.read
	select {
	case <-s.logged:
	case <-time.After(grace):
	}
}

// stderrLine is a line of stderr that is not blank.
type stderrLine struct {
	text string
	read time.Time
}

// maxRecent is the number of lines that are kept to explain how the child ended. It is so large
// that a usage text does not displace the error before it. maxRecentLine limits the bytes of a
// line.
const maxRecent, maxRecentLine = 100, 1 << 10

// keep adds a line to the recent ones.
func (s *stderrLog) keep(line string) {
	if len(s.recent) == maxRecent {
		s.recent = s.recent[1:]
	}
	s.recent = append(s.recent, stderrLine{text.Truncate(line, maxRecentLine), time.Now()})
}

// errorLine matches a line that looks like the message of an error. An indented line is code or a
// stack frame.
const errorLine = `(?i)^(|\S|\S.*[^\w/.-])\w*` +
	`(error|exception|panic|panicked|fatal|uncaught)\b|^npm ERR!`

// complaintLine matches a line that says what is wrong without the word error, as many programs do
// about their arguments. usageLine matches the beginning of a usage text.
const (
	complaintLine = `(?i)^(\S.*\b)?(not defined|unknown|unrecogni[sz]ed|invalid|cannot|can't|` +
		`could not|missing|required|no such|not found|denied|failed|refused)\b`
	usageLine = `(?i)^usage\b`
)

// explanation returns the lines in recent, the end of a child's stderr, that explain why the child
// ended. They begin with the first line that looks like an error, otherwise the first that looks
// like a complaint or begins a usage text, otherwise the last line. Lines that were written a while
// before the last one are older messages, and do not count.
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
	first := -1
	for _, pattern := range []string{errorLine, complaintLine, usageLine} {
		matches := regexp.MustCompile(pattern).MatchString
		if first < 0 {
			first = slices.IndexFunc(recent, func(l stderrLine) bool {
				return recent[last].read.Sub(l.read) < burst && matches(l.text)
			})
		}
	}
	if first < 0 {
		first = last
	}
	isUsage := regexp.MustCompile(usageLine).MatchString
	var lines []string
	for i, l := range recent[first:min(first+maxLines, len(recent))] {
		if i > 0 && isUsage(l.text) {
			break
		}
		lines = append(lines, text.Plain(text.Truncate(l.text, maxBytes)))
	}
	return lines
}

// readLines reads r until it ends, and closes it.
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
			s.logger.Warn("cannot log all lines of a child's stderr: the log is too slow",
				"lines", n)
		}
	}
}
