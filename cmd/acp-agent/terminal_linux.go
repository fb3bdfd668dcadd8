package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
