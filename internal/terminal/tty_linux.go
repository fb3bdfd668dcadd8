package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// The requests that read and change the settings of a terminal.
const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
