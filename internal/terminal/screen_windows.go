package terminal

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Screen is not supported: the list of sessions is printed instead.
type Screen struct{ in, out *os.File }

// OpenScreen opens no screen.
func OpenScreen(io.Reader, io.Writer) (*Screen, bool) { return nil, false }

func (*Screen) enter() error { return nil }

func (*Screen) listen() error { return nil }

func (*Screen) restore() error { return nil }

func (*Screen) close() error { return nil }

func (*Screen) suspend() error { return nil }

func (*Screen) read(time.Duration) (string, error) { return "", nil }

func (*Screen) size() (width, height int) { return 80, 24 }

// awaitTyped does nothing: it is not known whether a line was typed.
func awaitTyped(context.Context, *os.File) {}

// terminalWidth returns the number of columns of a terminal, 0 if it is unknown.
func terminalWidth(terminal *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info) != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}
