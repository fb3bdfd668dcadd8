//go:build unix && !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped discards what was typed on a terminal and not read.
func discardTyped(terminal *os.File) {
	const fread = 1
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, fread)
}
