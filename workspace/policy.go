package workspace

import (
	"os"
	"slices"
)

// Policy says which directories may be roots. It is applied to real paths. The zero Policy allows
// everything.
type Policy struct {
	// Allow, if not empty, lists the directories that every root must be or lie in.
	Allow []Dir
	// OnlyAllowed allows nothing if Allow is empty. It also denies other directories before they
	// are examined, so that the error does not reveal what exists there.
	OnlyAllowed bool
	// Deny lists files and directories. No root may be one of them or lie in one, and every access
	// to one that lies in a root is refused.
	Deny []Dir
}

// allows reports whether at lies in an allowed directory.
func (p Policy) allows(at location) bool {
	for _, dir := range p.Allow {
		if at.below(resolveDir(dir)) {
			return true
		}
	}
	return len(p.Allow) == 0 && !p.OnlyAllowed
}

// denial is a location of a denied directory.
type denial struct {
	dir  Dir
	at   location
	info os.FileInfo // nil if the directory does not exist
}

// denials returns the locations of denied directories: the spelling and the real path of each, and
// those that its links lead through, so that no link on the way can be replaced.
func denials(dirs []Dir) []denial {
	var out []denial
	for _, dir := range dirs {
		way := wayTo(dir)
		for _, at := range append(way, listed(way[len(way)-1])) {
			if n := len(out); n == 0 || out[n-1].dir != dir || !out[n-1].at.equal(at) {
				out = append(out, denial{dir: dir, at: at})
			}
		}
		info, err := os.Stat(dir.path)
		if err == nil {
			out[len(out)-1].info = info
		}
	}
	return out
}

// wayTo returns the location of dir as it is spelled, and where it is after following the first
// link on the way, and so on. The last has no links, as far as it exists.
func wayTo(dir Dir) []location {
	way := []location{locate(dir.path)}
	for range maxLinks {
		next, followed := followFirst(way[len(way)-1])
		way = append(way, next)
		if !followed {
			break
		}
	}
	return way
}

// followFirst returns at with its first link replaced by the link's target, after resolving each
// ".." before it. Without a link it resolves each "..".
func followFirst(at location) (next location, followed bool) {
	dir := location{top: at.top}
	for i, name := range at.names {
		if name == ".." {
			dir = dir.parent()
			continue
		}
		there := dir.child(name)
		target, err := os.Readlink(there.String())
		if err != nil {
			dir = there
			continue
		}
		if to := locate(target); to.top != "" {
			dir = to
		} else {
			dir = dir.child(to.names...)
		}
		return dir.child(at.names[i+1:]...), true
	}
	return dir, false
}

// below returns the denials of what lies in a root.
func below(denied []denial, roots []location) []denial {
	return slices.DeleteFunc(slices.Clone(denied), func(d denial) bool {
		return !slices.ContainsFunc(roots, d.at.below)
	})
}

// resolveDir returns the location of dir with links followed as far as the path exists, including
// links to what does not exist yet.
func resolveDir(dir Dir) location {
	way := wayTo(dir)
	return listed(way[len(way)-1])
}

// listed returns at, which has no links, as [Real] has its directory as far as that exists.
func listed(at location) location {
	dir, err := ParseDir(at.String())
	if err != nil || len(at.names) == 0 {
		return at
	}
	if info, err := os.Lstat(dir.path); err == nil && info.IsDir() {
		return locate(Real(dir).path)
	}
	return listed(at.parent()).child(at.names[len(at.names)-1])
}

// A directory is denied by its location, so that what does not exist yet is denied too, and by its
// identity, whatever name it was reached by: another case on a file system that ignores case, or a
// second mount. These are the checks:
//
//   - checkPolicy and newGuard refuse a root that lies in a denied directory, or is one.
//   - guard.CheckDir is asked about each directory that is opened below a root. A path may lead
//     through a denied one and out again, but nothing in it can be touched by its handle.
//   - checkArrival refuses the end of each path, before anything is done there.
//   - resolveOnce refuses a path that failed in a denied directory, so that its error does not tell
//     what is in there.
//   - checkDenied and openDir of a [Directory] refuse its entries, whose paths are not resolved.
//   - checkHoldsNone refuses to move or remove a denied directory or one above it: elsewhere it would
//     not be denied by its location.
//
// The error is a *[DeniedError]. That of a guard has no path before failed adds it.

// denies returns the denied directory that at lies in, if any.
func (w *Workspace) denies(at location) (Dir, bool) {
	for _, d := range w.denied {
		if at.below(d.at) {
			return d.dir, true
		}
	}
	return Dir{}, false
}

// checkLocation returns a *DeniedError if at, which path led to, lies in a denied directory.
func (w *Workspace) checkLocation(path string, at location) error {
	if dir, denied := w.denies(at); denied {
		return &DeniedError{Path: path, By: dir}
	}
	return nil
}

// checkArrival returns a *DeniedError if path led to something denied, by its location or its
// identity.
func (w *Workspace) checkArrival(end arrival) error {
	if err := w.checkLocation(end.asked.path, end.at); err != nil {
		return err
	}
	err := end.dir.Blocked()
	if end.name != "" && !end.stat.IsZero() {
		err = end.dir.CheckDir(end.stat)
	}
	if err != nil {
		return failed("open", end.asked.path, err)
	}
	return nil
}
