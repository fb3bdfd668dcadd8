package commandline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// The index of a repository says which files git opens, and git takes its names as they are: git
// diff prints ../x if there is an entry of that name, and git grep follows a link that has replaced
// a folder. git itself writes no such names, but whoever made the repository may have.

const (
	maxGitIndex = 64 << 20
	indexHeader = 12 // "DIRC", version, number of entries
	entryHeader = 62 // times, numbers, mode, size, object, flags
	indexHash   = 20
	entryAlign  = 8

	flagExtended = 0x4000
	flagName     = 0xfff // the length of the name, or more
)

var errIndex = errors.New("the index of the repository is not understood")

// trackedFiles returns the names of the files in the index of the repository at top. It returns an
// error if one is a submodule, or may be opened somewhere else than in top.
func trackedFiles(ws *workspace.Workspace, top string) ([]string, error) {
	content, err := readAll(ws, top+"/.git/index", maxGitIndex)
	if errors.Is(err, fs.ErrNotExist) { // nothing was added yet
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tracked, err := namesInIndex(content)
	if err != nil {
		return nil, err
	}
	return tracked, checkTracked(ws, top, tracked)
}

// checkTracked returns an error if a folder with tracked files is a link now.
func checkTracked(ws *workspace.Workspace, top string, tracked []string) error {
	seen := map[string]bool{".": true}
	for _, name := range tracked {
		for dir := path.Dir(name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if len(seen) > maxGitFolders {
				return fmt.Errorf("the repository has files in more than %d folders", maxGitFolders)
			}
			info, err := ws.Lstat(top + "/" + dir)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case info.Mode()&fs.ModeSymlink != 0:
				return errForeign
			}
		}
	}
	return nil
}

// namesInIndex returns the names in an index. It understands what git writes by default, without
// names that are shortened.
func namesInIndex(content []byte) (names []string, err error) {
	if len(content) < indexHeader+indexHash || string(content[:4]) != "DIRC" {
		return nil, errIndex
	}
	if version := binary.BigEndian.Uint32(content[4:]); version != 2 && version != 3 {
		return nil, errIndex
	}
	rest := content[indexHeader : len(content)-indexHash]
	for range binary.BigEndian.Uint32(content[8:]) {
		var name string
		if name, rest, err = nextEntry(rest); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, checkExtensions(rest)
}

// nextEntry returns the name of the first entry, and what follows the entry.
func nextEntry(entry []byte) (name string, rest []byte, err error) {
	if len(entry) < entryHeader {
		return "", nil, errIndex
	}
	mode := binary.BigEndian.Uint32(entry[24:])
	flags := int(binary.BigEndian.Uint16(entry[60:]))
	begin := entryHeader
	if flags&flagExtended != 0 {
		begin = min(begin+2, len(entry))
	}
	length := bytes.IndexByte(entry[begin:], 0)
	next := (begin + length + entryAlign) / entryAlign * entryAlign
	if length < 0 || next > len(entry) || flags&flagName != min(length, flagName) {
		return "", nil, errIndex
	}
	if name = string(entry[begin : begin+length]); !isTracked(mode, name) {
		return "", nil, errIndex
	}
	return name, entry[next:], nil
}

// isTracked reports whether an entry is a file or a link in the folder of the repository, and no
// submodule.
func isTracked(mode uint32, name string) bool {
	const kind, file, link = 0o170000, 0o100000, 0o120000
	return (mode&kind == file || mode&kind == link) && name != "." && fs.ValidPath(name) &&
		!slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
			return strings.EqualFold(part, ".git")
		})
}

// checkExtensions returns an error if what follows the entries could change which there are: parts
// in other files, folders in place of files, and tables by which threads find entries.
func checkExtensions(rest []byte) error {
	for len(rest) >= 8 {
		name, size := string(rest[:4]), int64(binary.BigEndian.Uint32(rest[4:]))
		harmless := slices.Contains([]string{"TREE", "REUC", "UNTR", "FSMN"}, name)
		if !harmless || size > int64(len(rest)-8) {
			return errIndex
		}
		rest = rest[8+size:]
	}
	if len(rest) > 0 {
		return errIndex
	}
	return nil
}
