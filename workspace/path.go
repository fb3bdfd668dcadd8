package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// longestPath is the most bytes of a path that is looked at: what Windows allows, and
// eight times what Linux does.
const longestPath = 32767

var (
	errEmptyPath = fmt.Errorf("%w: the path is empty", fs.ErrInvalid)
	errNULInPath = fmt.Errorf("%w: the path contains a NUL character", fs.ErrInvalid)
	errComponent = fmt.Errorf("%w: not a name in a directory", fs.ErrInvalid)
)

// asked is a path as somebody asked for it, taken apart.
type asked struct {
	path string
	at   location
	// dir reports whether the path can only mean a directory, as "d/" does.
	dir bool
}

func parse(path string) (asked, error) {
	var err error
	switch {
	case path == "":
		err = errEmptyPath
	case hasNUL(path):
		err = errNULInPath
	case len(path) > longestPath:
		err = syscall.ENAMETOOLONG
	}
	if err != nil {
		return asked{}, failed("open", path, err)
	}
	top, names, dir := native{}.split(path)
	return asked{path, location{top, names}, dir}, nil
}

// parseName checks that name is one component, so that it stays in its directory.
func parseName(name string) error {
	top, names, _ := native{}.split(name)
	switch {
	case hasNUL(name):
		return failed("open", name, errNULInPath)
	case top != "" || len(names) != 1 || names[0] != name || name == "..":
		return failed("open", name, errComponent)
	default:
		return nil
	}
}

// failed is err about the path that was asked for, not about the part of it that was
// being walked. errors.Is still finds what it was.
func failed(op, path string, err error) error {
	if denial := (*denialError)(nil); errors.As(err, &denial) {
		return &DeniedError{Path: path, By: denial.by}
	}
	if isMountRefusal(err) {
		return &MountError{Path: path, Why: cause(err)}
	}
	return &fs.PathError{Op: op, Path: path, Err: cause(err)}
}

// unfit is why something of this type is not the file that was asked for.
func unfit(path string, mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return failed("open", path, syscall.EISDIR)
	case mode.IsRegular(): // "file/"
		return failed("open", path, syscall.ENOTDIR)
	case mode&fs.ModeNamedPipe != 0:
		return &SpecialFileError{Path: path, Kind: "fifo"}
	case mode&fs.ModeSocket != 0:
		return &SpecialFileError{Path: path, Kind: "socket"}
	case mode&fs.ModeDevice != 0:
		return &SpecialFileError{Path: path, Kind: "device"}
	default:
		return &SpecialFileError{Path: path, Kind: "irregular file"}
	}
}
