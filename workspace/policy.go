package workspace

import (
	"os"
	"slices"

	"github.com/acp-agent/acp-agent/internal/files/links"
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
	return len(p.Allow) == 0 && !p.OnlyAllowed ||
		slices.ContainsFunc(p.Allow, func(dir Dir) bool { return at.below(resolveDir(dir)) })
}

// denial is a location of a denied directory.
type denial struct {
	dir  Dir
	at   location
	info os.FileInfo // nil if the directory does not exist
}

// denials are the locations of denied directories.
type denials []denial

// findDenials returns the spelling and the real path of each of some directories, and the paths
// that its links lead through, so that no link on the way can be replaced.
func findDenials(dirs []Dir) denials {
	var all denials
	for _, dir := range dirs {
		way, _ := links.Follow(dir.path)
		places := []location{locate(dir.path)}
		for _, link := range way.Links {
			places = append(places, locate(link.Then))
		}
		real := locate(way.Path())
		places = append(places, real, listed(real))
		info, _ := os.Stat(dir.path)
		for _, at := range slices.CompactFunc(places, location.equal) {
			all = append(all, denial{dir, at, info})
		}
	}
	return all
}

// find returns the denied directory that a location lies in, if any.
func (d denials) find(at location) (Dir, bool) {
	for _, one := range d {
		if at.below(one.at) {
			return one.dir, true
		}
	}
	return Dir{}, false
}

// in returns the denials of what lies in a root.
func (d denials) in(roots openRoots) denials {
	return slices.DeleteFunc(slices.Clone(d), func(one denial) bool {
		return !slices.ContainsFunc(roots, func(r *openRoot) bool { return one.at.below(r.at) })
	})
}

// check returns a *DeniedError if at, which path led to, lies in a denied directory.
func (d denials) check(path string, at location) error {
	if dir, denied := d.find(at); denied {
		return &DeniedError{Path: path, By: dir}
	}
	return nil
}

// resolveDir returns the location of dir with links followed as far as the path exists, including
// links to what does not exist yet.
func resolveDir(dir Dir) location {
	return listed(locate(links.RealPath(dir.path)))
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

// checkArrival returns a *DeniedError if path led to something denied, by its location or its
// identity.
func (w *Workspace) checkArrival(found arrival) error {
	if err := w.denied.check(found.asked.path, found.at); err != nil {
		return err
	}
	err := found.dir.Blocked()
	if found.name != "" && found.exists() {
		err = found.dir.CheckDir(found.stat)
	}
	if err != nil {
		return failed("open", found.asked.path, err)
	}
	return nil
}
