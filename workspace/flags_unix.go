//go:build unix && !linux

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// readFlags open for reading without waiting for the other end of a FIFO.
	readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// lookFlags would open whatever it is without touching it.
	lookFlags = 0
	// canLook reports whether the system has lookFlags.
	canLook = false
)
