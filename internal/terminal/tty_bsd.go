//go:build unix && !linux

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// The requests that read and change the settings of a terminal.
const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	const fread = 1
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, fread)
}
