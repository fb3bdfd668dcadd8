package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/files/namedfile"
)

// Chat lets the user type prompts, and sends each, until they end it. A pasted text may have
// several lines.
func (c *Screen) Chat(ctx context.Context, send func(context.Context, string) error) error {
	for {
		discardTyped(c.in) // nobody could see yet what to type
		e := lineEditor{keys: &keyboard{screen: c}, label: "\nYour prompt (empty to end): "}
		prompt, err := e.read(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || strings.TrimSpace(prompt) == "" {
			return err
		}
		if err := send(ctx, prompt); err != nil {
			return err
		}
	}
}

// An Asker asks questions that the user answers by typing a line.
type Asker struct {
	keys *keyboard // of a terminal that can be controlled, otherwise nil

	out    io.Writer
	reader *Reader
}

// NewAsker returns an Asker for the terminal of in and out.
func NewAsker(in *os.File, out io.Writer) *Asker {
	if screen, ok := OpenScreen(in, out); ok {
		return &Asker{keys: &keyboard{screen: screen}}
	}
	return &Asker{out: out, reader: NewReader(in)}
}

// Ask returns the line that the user types, without white space around it. complete, if not nil,
// completes it when they type Tab. At the end of the input the error is [io.EOF].
func (a *Asker) Ask(
	ctx context.Context, question string, complete func(string) string,
) (string, error) {
	if a.reader != nil {
		fmt.Fprint(a.out, question+" ")
		return a.reader.Line(ctx)
	}
	e := lineEditor{keys: a.keys, label: question + " ", complete: complete}
	line, err := e.read(ctx)
	return strings.TrimSpace(line), err
}

// lineEditor shows a line behind a label while it is typed.
type lineEditor struct {
	keys     *keyboard
	label    string
	complete func(typed string) string
	typed    string
	shown    []string // the lines on the terminal
}

// read returns what the user types. With Alt and Enter, or pasted, it may have several lines. After
// Ctrl-C the error is [context.Canceled].
func (e *lineEditor) read(ctx context.Context) (line string, err error) {
	if err := e.begin(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.end()) }()
	for ctx.Err() == nil {
		if !e.keys.ready() {
			if err := e.draw(); err != nil {
				return "", err
			}
		}
		key, err := e.keys.next(keyTick)
		if err != nil {
			return e.typed, err
		}
		switch key {
		case keyEnter, "\n":
			return e.typed, e.draw()
		case keyInterrupt:
			return "", context.Canceled
		case keyEndOfInput:
			if e.typed == "" {
				return "", io.EOF
			}
		case "\t":
			if e.complete != nil {
				e.typed = e.complete(e.typed)
			}
		case "\x1b" + keyEnter: // with Alt
			e.typed += "\n"
		case keyDelete, "\b":
			e.typed = withoutLast(e.typed)
		case keyClear:
			e.typed = ""
		case keySuspend:
			err = errors.Join(e.end(), e.keys.screen.suspend(), e.begin())
			if err != nil {
				return "", err
			}
		default:
			e.typed += typedText(key)
		}
	}
	return "", context.Cause(ctx)
}

// begin begins to show it below what the terminal shows.
func (e *lineEditor) begin() error {
	e.shown = nil
	_, err := e.keys.screen.out.WriteString("\x1b[?2004h")
	return errors.Join(err, e.keys.screen.listen())
}

// draw shows as much as fits of the end of the line, if it has changed.
func (e *lineEditor) draw() error {
	width, height := e.keys.screen.size()
	var lines []string
	for line := range strings.SplitSeq(e.label+e.typed, "\n") {
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
	_, err := e.keys.screen.out.WriteString(up + "\r\x1b[J" + strings.Join(lines, "\r\n"))
	return err
}

// end leaves the line on the terminal.
func (e *lineEditor) end() error {
	_, err := e.keys.screen.out.WriteString("\x1b[?2004l\r\n")
	return errors.Join(err, e.keys.screen.restore())
}

// CompleteFolder completes the path of a folder, which starts in dir, until there is a choice.
func CompleteFolder(dir, typed string) string {
	parent, begin := "", typed
	if i := strings.LastIndexByte(typed, '/'); i >= 0 {
		parent, begin = typed[:i+1], typed[i+1:]
	}
	at, err := namedfile.ExpandHome(parent)
	if !strings.HasPrefix(at, "/") {
		at = dir + "/" + at
	}
	entries, failed := os.ReadDir(at)
	if err != nil || failed != nil {
		return typed
	}
	common, matches := "", 0
	for _, entry := range entries {
		name := entry.Name()
		info, err := os.Stat(at + "/" + name)
		if err != nil || !info.IsDir() || !strings.HasPrefix(name, begin) ||
			begin == "" && name[0] == '.' {
			continue
		}
		if matches++; matches == 1 {
			common = name
		}
		for !strings.HasPrefix(name, common) {
			common = withoutLast(common)
		}
	}
	switch matches {
	case 0:
		return typed
	case 1:
		common += "/"
	}
	return parent + common
}
