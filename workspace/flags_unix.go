//go:build unix && !linux

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// readFlags open for reading without waiting for the other end of a FIFO.
const readFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
