package workspace

import "os"

// readFlags open for reading.
const readFlags = os.O_RDONLY
