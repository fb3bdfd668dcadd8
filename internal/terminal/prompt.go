package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// readPrompt returns a prompt that the user types, "" to end. A pasted text may have several lines.
func (p *picker) readPrompt(ctx context.Context) (prompt string, err error) {
	discardTyped(p.screen.in) // nobody could see yet what to type
	e := promptEditor{screen: p.screen}
	if err := e.begin(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.end()) }()
	for ctx.Err() == nil {
		if !p.keys.ready() {
			if err := e.draw(); err != nil {
				return "", err
			}
		}
		key, err := p.keys.next(keyTick)
		if err != nil {
			return "", err
		}
		switch key {
		case keyEnter, "\n":
			return e.typed, nil
		case keyInterrupt:
			return "", nil
		case keyEndOfInput:
			if e.typed == "" {
				return "", nil
			}
		case "\x1b" + keyEnter: // with Alt
			e.typed += "\n"
		case keyDelete, "\b":
			e.typed = withoutLast(e.typed)
		case keyClear:
			e.typed = ""
		case keySuspend:
			err = errors.Join(e.end(), p.screen.suspend(), e.begin())
			if err != nil {
				return "", err
			}
		default:
			e.typed += typedText(key)
		}
	}
	return "", context.Cause(ctx)
}

// promptEditor shows a prompt while it is typed.
type promptEditor struct {
	screen *Screen
	typed  string
	shown  []string // the lines on the terminal
}

// begin begins to show it below what the terminal shows.
func (e *promptEditor) begin() error {
	e.shown = nil
	_, err := e.screen.out.WriteString("\n\x1b[?2004h")
	return errors.Join(err, e.screen.listen())
}

// draw shows as much as fits of the end of the prompt, if it has changed.
func (e *promptEditor) draw() error {
	width, height := e.screen.size()
	var lines []string
	for line := range strings.SplitSeq("Your prompt (empty to end): "+e.typed, "\n") {
		lines = append(lines, wrapped(OneLine(line), width-1)...)
	}
	lines = lines[max(len(lines)-max(height-1, 1), 0):]
	if slices.Equal(lines, e.shown) {
		return nil
	}
	up := ""
	if n := len(e.shown) - 1; n > 0 {
		up = fmt.Sprintf("\x1b[%dA", n)
	}
	e.shown = lines
	_, err := e.screen.out.WriteString(up + "\r\x1b[J" + strings.Join(lines, "\r\n"))
	return err
}

// end leaves the prompt on the terminal.
func (e *promptEditor) end() error {
	_, err := e.screen.out.WriteString("\x1b[?2004l\n")
	return errors.Join(err, e.screen.restore())
}
