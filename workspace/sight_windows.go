package workspace

import (
	"io/fs"
	"os"
)

// linkTypes are the types of what leads elsewhere: symbolic links, and by the other bit junctions and the
// places where a volume is mounted, which are irregular to Go. One of another kind cannot
// be read as a link, and is refused.
const linkTypes = fs.ModeSymlink | fs.ModeIrregular

// mountOf is one and the same for all: on Windows a volume is mounted below a directory by something that
// counts as a link.
func mountOf(os.FileInfo) mountID { return 1 }
