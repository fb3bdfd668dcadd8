package commandline

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// separators end a path within a word, as in HEAD:name, test.py::name and name=value.
const separators = ":=,"

// inside returns an error unless everything in word that a program could take for a path lies in
// the roots. Relative paths start at dir.
func inside(ws *workspace.Workspace, dir, word string) error {
	if word == "" || strings.ContainsAny(word[:1], ":@~-") {
		return fmt.Errorf("%q has a special meaning", word) // such as pathspecs and files of options
	}
	if err := insidePath(ws, dir, word); err != nil {
		return err
	}
	for i := range len(word) {
		if !strings.ContainsAny(word[i:i+1], separators) {
			continue
		}
		for _, part := range []string{word[:i], word[i+1:]} {
			if part == "" {
				continue
			}
			if err := insidePath(ws, dir, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// insidePath returns an error unless a path leads into the roots, for other processes too. Nothing
// need exist there.
func insidePath(ws *workspace.Workspace, dir, path string) error {
	path = Absolute(dir, path)
	if _, err := ws.Stat(path); errors.Is(err, fs.ErrNotExist) {
		_, _, err = ws.MissingParents(path, true)
		return err
	}
	return ws.HandOver(path)
}

// Absolute returns a path that starts in dir. It is not clean: a ".." after a link leads elsewhere.
func Absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name
}
