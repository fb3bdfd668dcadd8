package main

import (
	"bufio"
	"context"
	"os"
	"strings"
)

// A typist is the person who answers questions by typing lines. It must not be used concurrently.
type typist struct {
	terminal *os.File
	in       *bufio.Reader  // from terminal
	typed    chan typedLine // receives the result of a running read; nil if none runs
}

// typedLine is a line that the user typed, or an error.
type typedLine struct {
	text string
	err  error
}

func newTypist(terminal *os.File) *typist {
	return &typist{terminal: terminal, in: bufio.NewReader(terminal)}
}

// read returns the next line, without white space around it. At the end of the input it returns the
// unfinished line with the error.
func (t *typist) read(ctx context.Context) (string, error) {
	if t.typed == nil {
		// The read cannot be interrupted. It ends with the program, or gets what the user types at
		// the next question.
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

// forget discards what was typed before a question is shown, because it cannot be meant as the
// answer.
func (t *typist) forget() {
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
