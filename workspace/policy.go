package workspace

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// denial is a denied directory and a location that it was found to have.
type denial struct {
	dir Dir
	at  location
}

// denials are the locations of the denied directories: the spelling and the real path of each.
func denials(dirs []Dir) []denial {
	var out []denial
	for _, dir := range dirs {
		spelled := locate(dir.path)
		out = append(out, denial{dir, spelled})
		if real := locate(resolve(dir.path)); !real.equal(spelled) {
			out = append(out, denial{dir, real})
		}
	}
	return out
}

// resolve is path with its links followed, as far as it exists.
func resolve(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	at := locate(path)
	if len(at.names) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	return locate(resolve(at.parent().String())).child(at.names[len(at.names)-1]).String()
}

// judge returns the denied directory that holds at, if any.
func judge(denied []denial, at location) (Dir, bool) {
	for _, d := range denied {
		if at.below(d.at) {
			return d.dir, true
		}
	}
	return Dir{}, false
}

// allows reports whether at lies in one of the allowed directories.
func allows(allowed []Dir, at location) bool {
	if len(allowed) == 0 {
		return true
	}
	for _, dir := range allowed {
		if at.below(locate(resolve(dir.path))) {
			return true
		}
	}
	return false
}

// allowed returns a *DeniedError if at, which asked led to, lies in a denied directory.
func (w *Workspace) allowed(asked string, at location) error {
	if dir, denied := judge(w.denied, at); denied {
		return &DeniedError{Path: asked, By: dir}
	}
	return nil
}
