package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// denial is a denied directory and a location that it was found to have.
type denial struct {
	dir  Dir
	at   location
	info os.FileInfo // nil if there was no such directory
}

// denials are the locations of the denied directories: the spelling and the real path of each.
func denials(dirs []Dir) []denial {
	var out []denial
	for _, dir := range dirs {
		spelled := locate(dir.path)
		info, err := os.Stat(dir.path)
		if err != nil {
			info = nil
		}
		out = append(out, denial{dir, spelled, info})
		if real := locate(resolve(dir.path)); !real.equal(spelled) {
			out = append(out, denial{dir, real, nil})
		}
	}
	return out
}

// resolve is path with its links followed, those too that lead to what is not there yet, as far as it exists.
func resolve(path string) string { return resolveAt(locate(path), maxLinks).String() }

// resolveAt follows no more than so many links that lead to nothing.
func resolveAt(at location, links int) location {
	real, err := filepath.EvalSymlinks(at.String())
	if err == nil {
		return locate(real)
	}
	n := len(at.names)
	if n == 0 || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return at
	}
	dir, name := resolveAt(at.parent(), links), at.names[n-1]
	if name == ".." {
		return dir.parent()
	}
	there := dir.child(name)
	target, err := os.Readlink(there.String())
	if err != nil || links == 0 {
		return there
	}
	to := locate(target)
	if to.top == "" {
		to = dir.child(to.names...)
	}
	return resolveAt(to, links-1)
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

// denialError: something in a denied directory. What the user sees is a [DeniedError].
type denialError struct{ by Dir }

func (e *denialError) Error() string { return e.by.path + " is denied" }

// admits returns a *DeniedError if what asked led to is denied, by its path or by what it is.
func (w *Workspace) admits(asked string, end arrival) error {
	if err := w.allowed(asked, end.at); err != nil {
		return err
	}
	err := end.dir.Blocked()
	if guard := w.guards[end.root]; err == nil && guard != nil && end.name != "" && !end.seen.IsZero() {
		err = guard.CheckDir(end.seen)
	}
	if err != nil {
		return failed("open", asked, err)
	}
	return nil
}

// allowed returns a *DeniedError if at, which asked led to, lies in a denied directory.
func (w *Workspace) allowed(asked string, at location) error {
	if dir, denied := judge(w.denied, at); denied {
		return &DeniedError{Path: asked, By: dir}
	}
	return nil
}
