// Package links finds out where a path leads, by reading the links on it.
//
// It opens nothing, and the links may change a moment later. The path of a file that must not lie
// elsewhere is resolved by handle, as package workspace does it.
package links

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// most is the maximum number of links on one path, as on Linux.
const most = 40

const separator = string(filepath.Separator)

// Way is where a path leads.
type Way struct {
	// Real is the path without links and "..", as far as it exists, and Missing are the names that
	// follow.
	Real    string
	Missing []string
	// Links are the links that were followed.
	Links []Link
}

// Link is a link on a path.
type Link struct {
	// At is where the link is. No name but the last is that of a link.
	At string
	// Then is the path that takes the place of the one before: that of the target, with the names
	// that followed the link. It may have other links, and "..".
	Then string
}

// Path returns the path that w stands for, without links and "..".
func (w Way) Path() string {
	return filepath.Join(append([]string{w.Real}, w.Missing...)...)
}

// Follow finds out where an absolute path leads, by the same steps as a system call: it follows
// each link, and ".." is the parent of the directory that was reached. Names at the end may be
// missing.
//
// An error says why a system call would fail otherwise. Then the way leads where the path most
// likely does: a name that cannot be looked up, or is missing before "..", is taken for that of a
// directory, and after 40 links no more are followed.
func Follow(path string) (w Way, err error) {
	if !filepath.IsAbs(path) {
		return Way{Real: path}, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	for rest := w.begin(path); len(rest) > 0; {
		target, failed := w.step(rest[0])
		err = cmp.Or(err, failed)
		if target == "" {
			rest = rest[1:]
			continue
		}
		if len(w.Links) == most {
			w.Missing = rest
			return w, cmp.Or(err, error(&fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}))
		}
		at := filepath.Join(w.Real, rest[0])
		rest = append(w.begin(target), rest[1:]...)
		then := w.Real + separator + strings.Join(rest, separator)
		w.Links = append(w.Links, Link{At: at, Then: then})
	}
	return w, err
}

// RealPath returns the path that a path stands for, or most likely stands for: see [Follow].
func RealPath(path string) string {
	w, _ := Follow(path)
	return w.Path()
}

// begin returns the names in a path, and goes to the top of its tree unless it is relative.
func (w *Way) begin(path string) (names []string) {
	volume := filepath.VolumeName(path)
	path = filepath.FromSlash(path[len(volume):])
	if volume != "" || strings.HasPrefix(path, separator) {
		w.Real = cmp.Or(volume, filepath.VolumeName(w.Real)) + separator
	}
	return strings.Split(path, separator)
}

// step goes on to a name. If that is a link, it returns the target instead.
func (w *Way) step(name string) (target string, err error) {
	at, missing := filepath.Join(w.Real, name), len(w.Missing)
	switch {
	case name == "" || name == ".":
		return "", nil
	case name == ".." && missing > 0:
		err = &fs.PathError{Op: "open", Path: w.Path(), Err: fs.ErrNotExist}
		w.Missing = w.Missing[:missing-1]
		return "", err
	case name == "..":
		w.Real = at
		return "", nil
	case missing > 0:
		w.Missing = append(w.Missing, name)
		return "", nil
	}
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		w.Missing = []string{name}
		return "", nil
	}
	const kinds = fs.ModeSymlink | fs.ModeIrregular // the junctions of Windows
	if err == nil && info.Mode()&kinds != 0 {
		target, err = os.Readlink(at)
	}
	if err != nil || target == "" {
		w.Real = at
	}
	return target, err
}
