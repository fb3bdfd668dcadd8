package terminal

import (
	"bufio"
	"context"
	"os"
	"strings"
)

// A Typist is the person who answers questions by typing lines. It must not be used concurrently.
type Typist struct {
	terminal *os.File
	in       *bufio.Reader  // from terminal
	typed    chan typedLine // receives the result of a running read; nil if none runs
}

// typedLine is a line that the user typed, or an error.
type typedLine struct {
	text string
	err  error
}

func NewTypist(terminal *os.File) *Typist {
	return &Typist{terminal: terminal, in: bufio.NewReader(terminal)}
}

// Read returns the next line, without white space around it. At the end of the input it returns the
// unfinished line with the error.
func (t *Typist) Read(ctx context.Context) (string, error) {
	if t.typed == nil {
		if t.in.Buffered() == 0 {
			awaitTyped(ctx, t.terminal)
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		// The read cannot be interrupted. Where it has to wait for the user, it ends with the
		// program, or gets what they type at the next question.
		typed := make(chan typedLine, 1)
		t.typed = typed
		go func() {
			line, err := t.in.ReadString('\n')
			typed <- typedLine{strings.TrimSpace(line), err}
		}()
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-t.typed:
		t.typed = nil
		return line.text, line.err
	}
}

// Forget discards what was typed before a question is shown: it cannot be the answer.
func (t *Typist) Forget() {
	if t.typed != nil {
		select {
		case <-t.typed:
			t.typed = nil
		default: // it still reads
		}
	}
	if t.typed == nil {
		_, _ = t.in.Discard(t.in.Buffered()) // never fails
	}
	discardTyped(t.terminal)
}
