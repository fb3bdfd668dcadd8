//go:build unix

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// Screen is a terminal that shows a whole page and gets each key as it is typed.
type Screen struct {
	in, out *os.File
	before  unix.Termios
}

// OpenScreen returns the terminal of input and output. ok is false if they are no such terminal.
func OpenScreen(input io.Reader, output io.Writer) (opened *Screen, ok bool) {
	in, isIn := input.(*os.File)
	out, isOut := output.(*os.File)
	if !isIn || !isOut || !Is(in) || !Is(out) || !ObeysEscapes() ||
		os.Getenv("TERM") == "" {
		return nil, false
	}
	settings, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil, false
	}
	return &Screen{in: in, out: out, before: *settings}, true
}

// enter shows the page instead of what the terminal showed. Lines that are wider than expected are
// not wrapped.
func (c *Screen) enter() error {
	if err := c.listen(); err != nil {
		return err
	}
	_, err := c.out.WriteString("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h")
	return err
}

// listen makes read return each key, also those that would end the program.
func (c *Screen) listen() error {
	raw := c.before
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INPCK | unix.ISTRIP | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(int(c.in.Fd()), setTermios, &raw)
}

// restore undoes listen.
func (c *Screen) restore() error {
	return unix.IoctlSetTermios(int(c.in.Fd()), setTermios, &c.before)
}

// suspend stops the program, as Ctrl-Z does, until the shell continues it.
func (c *Screen) suspend() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return err
	}
	select {
	case <-continued:
	case <-time.After(100 * time.Millisecond): // nobody could continue it, so it was not stopped
	}
	return nil
}

// close shows again what the terminal showed.
func (c *Screen) close() error {
	_, err := c.out.WriteString("\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l")
	return errors.Join(err, c.restore())
}

// read returns what was typed, or nothing if that takes longer than wait.
func (c *Screen) read(wait time.Duration) (string, error) {
	ready := []unix.PollFd{{Fd: int32(c.in.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, int(wait.Milliseconds()))
	if n == 0 || errors.Is(err, unix.EINTR) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	typed := make([]byte, 1<<16)
	if n, err = unix.Read(int(c.in.Fd()), typed); n <= 0 && err == nil {
		err = io.EOF
	}
	return string(typed[:max(n, 0)]), err
}

// awaitTyped waits until a line was typed on a terminal, or ctx ends.
func awaitTyped(ctx context.Context, terminal *os.File) {
	const interval = 100 // milliseconds
	ready := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		if n, err := unix.Poll(ready, interval); n != 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// size returns the number of columns and lines.
func (c *Screen) size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(c.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// terminalWidth returns the number of columns of a terminal, 0 if it is unknown.
func terminalWidth(terminal *os.File) int {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
