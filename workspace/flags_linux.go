package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// readFlags open for reading without waiting for the other end of a FIFO.
	readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	// lookFlags open whatever it is without touching it, a link included.
	lookFlags = unix.O_PATH
)
