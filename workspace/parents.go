package workspace

import (
	"slices"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

const (
	// maxMissing is the most directories that [Workspace.MissingParents] returns, so that a person
	// can be shown all of them.
	maxMissing = 16
	// maxName is the longest name in a directory, in bytes.
	maxName = 255
)

// MissingParents returns where path would lead if the directories on the way existed, and those
// that are missing, outermost first. directory says whether path will be a directory: only then may
// it end with a separator. MissingParents changes nothing.
//
// It only descends from a directory that exists: the error is [fs.ErrNotExist] if a link leads to
// something missing, if a name after the first missing one is "..", and if a root is missing on the
// way. It is a *[LimitError] for more than 16 directories, and [fs.ErrExist] if something already
// has the path. The containment rules apply to the path and to each of the directories.
func (w *Workspace) MissingParents(path string, directory bool) (at Ref, missing []Ref, err error) {
	err = w.resolvePath(path, missingParents, func(found arrival) error {
		switch {
		case found.asked.dir && !directory:
			return failed("open", path, syscall.ENOENT)
		case found.missing == 0:
			return failed("open", path, syscall.EEXIST)
		}
		at, missing = found.ref, nil
		for dir := at.Parent(); len(missing) < found.missing-1; dir = dir.Parent() {
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		return nil
	})
	return at, missing, err
}

// arriveMissing ends the path at a name that nothing in the current directory has. The names after
// it do not exist either.
func (r *resolver) arriveMissing() (arrival, error) {
	if len(r.rest)-1 > maxMissing {
		return arrival{}, &LimitError{Path: r.asked.path, What: "missing directories",
			Limit: maxMissing}
	}
	for _, name := range r.rest {
		switch {
		case name == "..":
			return arrival{}, r.failed(syscall.ENOENT)
		case len(name) > maxName:
			return arrival{}, r.failed(syscall.ENAMETOOLONG)
		}
		if err := parseName(name); err != nil {
			return arrival{}, err
		}
	}
	top := r.next(r.rest[0])
	for _, root := range r.w.opened {
		if root.entersBelow(top) { // its directory is gone
			return arrival{}, r.failed(syscall.ENOENT)
		}
	}
	found := r.arrive(r.rest[0], r.at.child(r.rest...), dirfd.FileStat{})
	found.missing = len(r.rest)
	return found, nil
}
