package workspace

import "os"

const (
	// readFlags open for reading.
	readFlags = os.O_RDONLY
	// lookFlags would open whatever it is without touching it.
	lookFlags = 0
	// canLook reports whether the system has lookFlags.
	canLook = false
)
