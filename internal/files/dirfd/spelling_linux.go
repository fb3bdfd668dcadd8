package dirfd

import (
	"context"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

// listedPath returns path, which is absolute and without links, with each name as its directory
// lists it. So a directory has one path also where a file system ignores case or the normal form of
// names.
func listedPath(path string) string {
	if path == "/" {
		return path
	}
	dir, err := Open("/")
	if err != nil {
		return path
	}
	names := strings.Split(path[1:], "/")
	for i, name := range names {
		var below *Dir
		names[i], below = dir.listed(name)
		_ = dir.Close()
		if dir = below; dir == nil {
			return path
		}
	}
	_ = dir.Close()
	return "/" + strings.Join(names, "/")
}

// listed returns the directory name, nil if it cannot be opened, and its name as d lists it.
func (d *Dir) listed(name string) (string, *Dir) {
	below, err := d.OpenDir(name)
	if err != nil {
		return name, nil
	}
	stat, err := below.Stat(".")
	if err != nil || !d.folds(name, stat) {
		return name, below
	}
	found := false
	var others []string
	err = d.List(context.Background(), func(entry string, kind fs.FileMode) bool {
		if found = entry == name; !found && kind.IsDir() {
			others = append(others, entry)
		}
		return !found
	})
	if found || err != nil {
		return name, below
	}
	for _, other := range others {
		if now, err := d.Stat(other); err == nil && now == stat {
			return other, below
		}
	}
	return name, below
}

// folds reports whether another spelling of name leads to the same directory, which stat describes.
func (d *Dir) folds(name string, stat FileStat) bool {
	// A name that does not exist may be looked up in a network, to mount something there.
	if kind, err := d.system(); err == nil && kind == unix.AUTOFS_SUPER_MAGIC {
		return false
	}
	for _, other := range spellings(name) {
		if now, err := d.Stat(other); err == nil && now == stat {
			return true
		}
	}
	return false
}

// spellings returns other spellings of name: with a letter in the other case, of ASCII if there is
// one, and in another normal form.
func spellings(name string) (others []string) {
	for i, r := range name {
		other := unicode.ToLower(r)
		if other == r {
			other = unicode.ToUpper(r)
		}
		if other == r {
			continue
		}
		others = []string{name[:i] + string(other) + name[i+utf8.RuneLen(r):]}
		if r < utf8.RuneSelf {
			break
		}
	}
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		if other := form.String(name); other != name {
			others = append(others, other)
		}
	}
	return others
}
