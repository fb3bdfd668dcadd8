package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

const (
	// maxLinks is the maximum number of links in one path, as on Linux.
	maxLinks = 40
	// maxSteps bounds the work for one path: links can make a short one long.
	maxSteps = 10_000
	// above stands for the root index of a resolver that is not inside any root.
	above = -1
	// maxAttempts is how often an operation is tried when something on its path changes.
	maxAttempts = 64
)

// arrival is where a path led: the entry name in the directory dir, or dir itself if name is "".
//
// What is done there uses the handle of the directory and the name, so that later changes to the
// path cannot redirect it.
type arrival struct {
	asked parsedPath
	dir   *dirfd.Dir // valid until the resolver closes it
	name  string
	stat  dirfd.FileStat // of what is there, zero for nothing
	at    location
	ref   Ref // the same as at

	missing int // how many of at's last names do not exist
}

// exists reports whether something is where the path led.
func (found arrival) exists() bool { return !found.stat.IsZero() }

// describe describes what is where the path led, as it is now, nil if nothing was there. It fails
// with dirfd.ErrChanged if that is no longer the same.
func (found arrival) describe() (os.FileInfo, error) {
	if !found.exists() {
		return nil, nil
	}
	info, err := found.dir.Lstat(cmp.Or(found.name, "."))
	if err != nil {
		return nil, failed("open", found.asked.path, err)
	}
	if !found.stat.SameFile(info) {
		return nil, dirfd.ErrChanged
	}
	return info, nil
}

// resolver resolves a path one name at a time, as an operating system does, but from handle to
// handle: it opens each directory from the one before, and never by a path. It reads a link and
// resolves its target instead of following it. Above the roots it reads nothing: there it only
// compares names with those of the roots, until they lead into a root.
type resolver struct {
	w     *Workspace
	asked parsedPath
	want  ending

	root  int          // the root that the resolver is in, or above
	at    location     // the real path reached, without links and ".."; the resolver owns its names
	trail []*dirfd.Dir // directories entered below the root, outermost first

	rest  []string     // the names still to resolve
	links []linkTarget // that are being resolved, each in the one before
	hops  int          // links so far
	steps int          // names so far
}

// linkTarget is the target of a link that is being resolved.
type linkTarget struct {
	link  location // for error messages
	after int      // how many of the names in rest come after the target
}

// resolvePath finds out where a path leads, as resolve does, during an operation of its own.
func (w *Workspace) resolvePath(path string, want ending, use func(arrival) error) error {
	a, err := w.beginAt(path)
	if err != nil {
		return err
	}
	defer w.finish()
	return w.resolve(a, want, use)
}

// resolve finds out where a path leads and calls use with the result. It does both again if
// something changes in between.
func (w *Workspace) resolve(a parsedPath, want ending, use func(arrival) error) error {
	return retry(a.path, func() error { return w.resolveOnce(a, want, use) })
}

func (w *Workspace) resolveOnce(a parsedPath, want ending, use func(arrival) error) error {
	if a.dir {
		want = want.asDirectory()
	}
	r := &resolver{w: w, asked: a, want: want, root: above, at: location{top: a.at.top},
		rest: a.at.names}
	defer r.leave()
	if a.at.top == "" {
		r.enter(0)
	}
	found, err := r.run()
	if err != nil {
		if r.root == above {
			return err
		}
		// An error must not reveal what a denied directory contains.
		if denied := w.denied.check(a.path, r.at); denied != nil {
			return denied
		}
		return w.checkReplaced(a.path, r.root, err)
	}
	if err := w.checkArrival(found); err != nil {
		return err
	}
	return w.checkReplaced(a.path, found.ref.root.Index, use(found))
}

// checkReplaced returns err, or a ReplacedError if it means that nothing is at path and the root
// was replaced.
func (w *Workspace) checkReplaced(path string, root int, err error) error {
	if root := w.opened[root]; errors.Is(err, fs.ErrNotExist) && root.state() == Replaced {
		return &ReplacedError{path, root.Dir}
	}
	return err
}

// run resolves all names of the path.
func (r *resolver) run() (arrival, error) {
	for {
		if r.steps++; r.steps > maxSteps {
			return arrival{}, r.failed(syscall.ENAMETOOLONG)
		}
		if r.root == above && r.enterRoot() {
			continue
		}
		if err := r.endLinks(); err != nil {
			return arrival{}, err
		}
		if r.root == above {
			if err := r.stepAbove(); err != nil {
				return arrival{}, err
			}
			continue
		}
		if len(r.rest) == 0 {
			stat, err := r.here().Stat(".")
			if err != nil {
				return arrival{}, r.failed(err)
			}
			return r.arrive("", r.at, stat), nil
		}
		found, arrived, err := r.step()
		if arrived || err != nil {
			return found, err
		}
	}
}

// step resolves one name inside a root. It reports whether the path ends there.
func (r *resolver) step() (found arrival, arrived bool, err error) {
	name := r.rest[0]
	if name == ".." {
		r.rest = r.rest[1:]
		r.up()
		return arrival{}, false, nil
	}
	at := r.next(name)
	if root, ok := r.w.opened.find(at); ok {
		r.rest = r.rest[1:]
		r.enter(root)
		return arrival{}, false, nil
	}
	if len(r.rest) == 1 {
		return r.lastStep(name, at)
	}
	child, err := r.here().OpenDir(name)
	switch {
	case err == nil:
		r.rest = r.rest[1:]
		r.trail = append(r.trail, child)
		r.at = at
		return arrival{}, false, nil
	case r.isMissing(err):
		found, err = r.arriveMissing()
		return found, err == nil, err
	case !notDirectory(err):
		return arrival{}, false, r.failed(err)
	}
	seen, err := r.here().Stat(name)
	switch {
	case err != nil:
		return arrival{}, false, r.failed(err)
	case seen.IsLink():
		r.rest = r.rest[1:]
		return arrival{}, false, r.follow(name, at)
	case seen.IsDir():
		return arrival{}, false, dirfd.ErrChanged
	default:
		return arrival{}, false, r.failed(syscall.ENOTDIR)
	}
}

// isMissing reports whether err means that the next name does not exist, in a place where that is
// allowed. The target of a link must exist.
func (r *resolver) isMissing(err error) bool {
	return r.want.parentsMayMiss && len(r.links) == 0 && errors.Is(err, fs.ErrNotExist)
}

// notDirectory reports whether err means that an entry is not a directory; it may be a link to one.
func notDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// lastStep resolves the last name of the path, whose location is at.
func (r *resolver) lastStep(name string, at location) (found arrival, arrived bool, err error) {
	seen, err := r.here().Stat(name)
	switch {
	case r.want.mayMiss && errors.Is(err, fs.ErrNotExist):
		return r.arrive(name, at, dirfd.FileStat{}), true, nil
	case r.isMissing(err):
		found, err = r.arriveMissing()
		return found, err == nil, err
	case err != nil:
		return arrival{}, false, r.failed(err)
	case seen.IsLink() && r.want.follow:
		r.rest = r.rest[1:]
		return arrival{}, false, r.follow(name, at)
	case r.want.directory && !seen.IsDir():
		return arrival{}, false, r.failed(syscall.ENOTDIR)
	}
	return r.arrive(name, at, seen), true, nil
}

// arrive ends the path at the entry name of the current directory, or at that itself if name is "".
// stat is zero if there is no such entry.
func (r *resolver) arrive(name string, at location, stat dirfd.FileStat) arrival {
	return arrival{asked: r.asked, dir: r.here(), name: name, stat: stat, at: clone(at),
		ref: r.w.opened[r.root].refAt(at)}
}

// up goes to the parent directory.
func (r *resolver) up() {
	r.at = r.at.parent()
	if n := len(r.trail); n > 0 {
		_ = r.trail[n-1].Close()
		r.trail = r.trail[:n-1]
	} else if len(r.w.opened[r.root].at.names) > 0 {
		r.root = above
	}
}

// enter goes to the directory of a root.
func (r *resolver) enter(root int) {
	r.leave()
	r.root = root
	at := r.w.opened[root].at
	r.at = location{at.top, append(make([]string, 0, len(at.names)+len(r.rest)), at.names...)}
}

// next returns the location of name in the current directory, valid until the next step.
func (r *resolver) next(name string) location {
	return location{r.at.top, append(r.at.names, name)}
}

// leave closes the directories entered below the root.
func (r *resolver) leave() {
	for _, dir := range r.trail {
		_ = dir.Close()
	}
	r.trail = r.trail[:0]
}

// here returns the current directory.
func (r *resolver) here() *dirfd.Dir {
	if n := len(r.trail); n > 0 {
		return r.trail[n-1]
	}
	return r.w.opened[r.root].handle
}

func (r *resolver) failed(err error) error { return failed("open", r.asked.path, err) }

// follow replaces the link name, whose location is at, by its target.
func (r *resolver) follow(name string, at location) error {
	if r.hops++; r.hops > maxLinks {
		return fmt.Errorf("%s leads through more than %d links, perhaps in a circle: the last was "+
			"%s: %w", r.asked.path, maxLinks, at, syscall.ELOOP)
	}
	link := clone(at)
	if misleads, err := r.here().LinksMislead(); err != nil {
		return r.failed(err)
	} else if misleads {
		return &OutsideError{Path: r.asked.path, Link: link.String(), Roots: r.w.roots,
			Why: fmt.Sprintf("the link %s belongs to the system and does not lead where it says",
				link)}
	}
	target, err := r.here().Readlink(name)
	if errors.Is(err, syscall.EINVAL) {
		return dirfd.ErrChanged // no longer a link
	}
	if err != nil {
		return r.failed(err)
	}
	top, names, dir := native{}.split(target)
	if len(r.rest) == 0 && dir {
		r.want = r.want.asDirectory()
	}
	r.links = append(r.links, linkTarget{link, len(r.rest)})
	r.rest = append(names, r.rest...)
	if top != "" {
		r.leave()
		r.root = above
		r.at = location{top: top}
	}
	return nil
}

// enterRoot enters the innermost root on the way, if there is one.
func (r *resolver) enterRoot() bool {
	target := r.rest[:len(r.rest)-r.afterLinks()]
	ahead := location{r.at.top, target}
	if len(r.at.names) > 0 {
		ahead = r.at.child(target...)
	}
	root, taken, ok := r.w.opened.entered(ahead)
	if !ok {
		return false
	}
	// The entry point may already be passed, if ".." led out of a root inside another.
	if len(target) == len(r.rest) {
		r.rest = ahead.names[taken:]
	} else {
		r.rest = slices.Concat(ahead.names[taken:], r.rest[len(target):])
	}
	r.enter(root)
	return true
}

// stepAbove resolves one name above the roots. It fails unless that leads towards a root.
func (r *resolver) stepAbove() error {
	if len(r.rest) == 0 {
		return r.outside("it leads to")
	}
	name := r.rest[0]
	r.rest = r.rest[1:]
	if name == ".." {
		r.at = r.at.parent()
		return nil
	}
	r.at = r.next(name)
	if !r.w.opened.liesBelow(r.at) {
		return r.outside("")
	}
	return nil
}

// outside returns the error for a path that is in no root. how says how it got there.
func (r *resolver) outside(how string) error {
	e := &OutsideError{Path: r.asked.path, Roots: r.w.roots}
	if n := len(r.links); n > 0 {
		e.Link = r.links[n-1].link.String()
		how = fmt.Sprintf("the link %s leads to", e.Link)
	}
	if how != "" {
		e.Why = fmt.Sprintf("%s %s, which is in none of them", how, r.at)
	} else {
		e.Why = fmt.Sprintf("%s is in none of them", r.at)
	}
	return e
}

// afterLinks returns how many of the names in rest come after the innermost link's target.
func (r *resolver) afterLinks() int {
	if n := len(r.links); n > 0 {
		return r.links[n-1].after
	}
	return 0
}

// endLinks drops the links whose targets are resolved. Each target must be in a root.
func (r *resolver) endLinks() error {
	for len(r.links) > 0 && len(r.rest) == r.afterLinks() {
		if r.root == above {
			return r.outside("it leads to")
		}
		r.links = r.links[:len(r.links)-1]
	}
	return nil
}

// openRegular opens the file name in dir, which path led to, for reading. It must be a regular
// file.
func openRegular(dir *dirfd.Dir, name string, seen dirfd.FileStat, path string) (*os.File, error) {
	if !seen.IsRegular() {
		return nil, notRegular(path, seen.Mode())
	}
	f, err := dir.OpenRegular(name)
	if err != nil {
		return nil, failed("open", path, err)
	}
	return f, nil
}

// recheck returns err, or dirfd.ErrChanged if seen describes another file than name does now.
func recheck(dir *dirfd.Dir, name string, seen os.FileInfo, err error) error {
	if now, lstatErr := dir.Lstat(name); lstatErr == nil && !os.SameFile(now, seen) {
		return dirfd.ErrChanged
	}
	return err
}

// retry repeats do while it fails with dirfd.ErrChanged. After the last attempt the error is about
// path.
func retry(path string, do func() error) (err error) {
	for range maxAttempts {
		if err = do(); !errors.Is(err, dirfd.ErrChanged) {
			return err
		}
	}
	return failed("open", path, err)
}
