package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/dirfd"
)

const (
	// maxLinks is the most links that one path may lead through, as on Linux.
	maxLinks = 40
	// maxSteps bounds the work for one path: links can make a short one long.
	maxSteps = 10_000
	// above is the place of a walker that is in no root.
	above = -1
)

// lastLink says what to do at the end of a path.
type lastLink int

const (
	followLast lastLink = iota
	keepLast
	orMissing // follow it; what it, or the path, leads to need not exist
	toOpen    // follow it; whoever opens what is there needs no info
)

// arrival is where a path led: name in the directory dir, or dir itself if name is "". info is nil if
// there is nothing of that name, and for toOpen; seen is zero for dir itself. The handle is valid until
// its walker closes.
type arrival struct {
	dir  *dirfd.Dir
	name string
	seen dirfd.FileStat
	info os.FileInfo
	at   location
	root int
}

// walker walks a path one component at a time, as an operating system does, but from handle to
// handle: each directory is opened from the one before, and never by a path that was
// looked up earlier. A link is read, not followed: its target is walked in its stead. Where an absolute
// path starts, and above the roots, there is nothing to look at: there a walker only compares
// names with the roots' until they lead into one.
type walker struct {
	w     *Workspace
	asked asked
	last  lastLink

	root  int          // the root that the walker is in, or above
	at    location     // the real path reached: no links, no ".."; the names are the walker's own
	trail []*dirfd.Dir // directories entered below the root, outermost first

	rest  []string   // the names to go
	ends  []int      // for each link being walked: len(rest) at the end of its target
	links []location // and the link itself, for a person
	hops  int
	steps int
}

// walk calls use with the arrival of a path, and does both again if something changed under
// their feet.
func (w *Workspace) walk(a asked, last lastLink, use func(arrival) error) error {
	err := retry(func() error { return w.walkOnce(a, last, use) })
	if err == dirfd.ErrChanged {
		return failed("open", a.path, err)
	}
	return err
}

func (w *Workspace) walkOnce(a asked, last lastLink, use func(arrival) error) error {
	k := &walker{w: w, asked: a, last: last, root: above, at: location{top: a.at.top}, rest: a.at.names}
	defer k.leave()
	if a.at.top == "" {
		k.enter(w.doors[0].root)
	}
	end, err := k.run()
	if err != nil {
		if k.root != above {
			// What is in a denied directory, and what is not, is nobody's business.
			err = cmp.Or(w.allowed(a.path, k.at), err)
		}
		return err
	}
	if err := w.admits(a.path, end); err != nil {
		return err
	}
	return use(end)
}

// run walks to the end of the path.
func (k *walker) run() (arrival, error) {
	for {
		if k.steps++; k.steps > maxSteps {
			return arrival{}, k.failed(syscall.ENAMETOOLONG)
		}
		if k.root == above && k.approach() {
			continue
		}
		if err := k.endLinks(); err != nil {
			return arrival{}, err
		}
		if k.root == above {
			if err := k.stepAbove(); err != nil {
				return arrival{}, err
			}
			continue
		}
		if len(k.rest) == 0 {
			return k.arrive("", k.at)
		}
		end, arrived, err := k.step()
		if arrived || err != nil {
			return end, err
		}
	}
}

// step takes one name inside a root. It reports whether the path ends there.
func (k *walker) step() (end arrival, arrived bool, err error) {
	name := k.rest[0]
	if name == ".." {
		k.rest = k.rest[1:]
		k.up()
		return arrival{}, false, nil
	}
	at := k.into(name)
	if root, ok := k.w.rootAt(at); ok {
		k.rest = k.rest[1:]
		k.enter(root)
		return arrival{}, false, nil
	}
	if len(k.rest) == 1 {
		return k.lastStep(name, at)
	}
	child, err := k.here().OpenDir(name)
	switch {
	case err == nil:
		k.rest = k.rest[1:]
		k.trail = append(k.trail, child)
		k.at = at
		return arrival{}, false, nil
	case !notEntered(err):
		return arrival{}, false, k.failed(err)
	}
	seen, err := k.here().Stat(name)
	switch {
	case err != nil:
		return arrival{}, false, k.failed(err)
	case seen.IsLink():
		k.rest = k.rest[1:]
		return arrival{}, false, k.follow(name, at)
	case seen.IsDir():
		return arrival{}, false, dirfd.ErrChanged
	default:
		return arrival{}, false, k.failed(syscall.ENOTDIR)
	}
}

// notEntered reports whether err says that something is no directory, but maybe a link to one.
func notEntered(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// lastStep takes the last name of the path, which is at.
func (k *walker) lastStep(name string, at location) (end arrival, arrived bool, err error) {
	seen, err := k.here().Stat(name)
	switch {
	case k.last == orMissing && !k.asked.dir && errors.Is(err, fs.ErrNotExist):
		return arrival{k.here(), name, dirfd.FileStat{}, nil, k.kept(at), k.root}, true, nil
	case err != nil:
		return arrival{}, false, k.failed(err)
	}
	switch {
	case seen.IsLink() && (k.last != keepLast || k.asked.dir):
		k.rest = k.rest[1:]
		return arrival{}, false, k.follow(name, at)
	case k.asked.dir && !seen.IsDir():
		return arrival{}, false, k.failed(syscall.ENOTDIR)
	}
	end, err = k.arrive(name, at)
	if err == nil && end.info != nil && !seen.SameFile(end.info) {
		err = dirfd.ErrChanged
	}
	end.seen = seen
	return end, true, err
}

// arrive ends the path at name, or at the directory that the walker is in if name is "".
func (k *walker) arrive(name string, at location) (arrival, error) {
	end := arrival{dir: k.here(), name: name, at: k.kept(at), root: k.root}
	if k.last == toOpen {
		return end, nil
	}
	if name == "" {
		name = "."
	}
	var err error
	if end.info, err = end.dir.Lstat(name); err != nil {
		return arrival{}, k.failed(err)
	}
	return end, nil
}

// up goes to the parent of the directory that the walker is in.
func (k *walker) up() {
	k.at = k.at.parent()
	if n := len(k.trail); n > 0 {
		_ = k.trail[n-1].Close()
		k.trail = k.trail[:n-1]
	} else if len(k.w.real[k.root].names) > 0 {
		k.root = above
	}
}

// enter goes to the directory of a root.
func (k *walker) enter(root int) {
	k.leave()
	k.root = root
	real := k.w.real[root]
	k.at = location{real.top, append(make([]string, 0, len(real.names)+len(k.rest)), real.names...)}
}

// into is name in the directory that the walker is in, until the walker takes another step.
func (k *walker) into(name string) location {
	return location{k.at.top, append(k.at.names, name)}
}

// kept is at, to be kept.
func (k *walker) kept(at location) location { return location{at.top, slices.Clone(at.names)} }

// leave closes the directories entered below the root.
func (k *walker) leave() {
	closeAll(k.trail)
	k.trail = k.trail[:0]
}

// here is the directory that the walker is in.
func (k *walker) here() *dirfd.Dir {
	if n := len(k.trail); n > 0 {
		return k.trail[n-1]
	}
	return k.w.handles[k.root]
}

func (k *walker) failed(err error) error { return failed("open", k.asked.path, err) }

// follow puts the target of the link name, which is at, in its place.
func (k *walker) follow(name string, at location) error {
	if k.hops++; k.hops > maxLinks {
		return &TooManyLinksError{Path: k.asked.path, Link: at.String(), Limit: maxLinks}
	}
	link := k.kept(at)
	if misleads, err := k.here().LinksMislead(); err != nil {
		return k.failed(err)
	} else if misleads {
		return &OutsideError{Path: k.asked.path, Link: link.String(), Roots: k.w.roots,
			Why: fmt.Sprintf("the link %s is one of the system's own, which leads elsewhere than it says", link)}
	}
	target, err := k.here().Readlink(name)
	if errors.Is(err, syscall.EINVAL) {
		return dirfd.ErrChanged // it is no link any more
	}
	if err != nil {
		return k.failed(err)
	}
	top, names, dir := native{}.split(target)
	if len(k.rest) == 0 && dir {
		k.asked.dir = true
	}
	k.ends = append(k.ends, len(k.rest))
	k.links = append(k.links, link)
	k.rest = append(names, k.rest...)
	if top != "" {
		k.leave()
		k.root = above
		k.at = location{top: top}
	}
	return nil
}

// approach goes through the deepest door on the way, if there is one.
func (k *walker) approach() bool {
	target := k.rest[:len(k.rest)-k.end()]
	ahead := location{k.at.top, target}
	if len(k.at.names) > 0 {
		ahead = k.at.child(target...)
	}
	root, taken, ok := k.w.enter(ahead)
	if !ok {
		return false
	}
	// The door may lie behind, when ".." led out of a root inside another.
	if len(target) == len(k.rest) {
		k.rest = ahead.names[taken:]
	} else {
		k.rest = slices.Concat(ahead.names[taken:], k.rest[len(target):])
	}
	k.enter(root)
	return true
}

// stepAbove takes one name above the roots: only towards a root.
func (k *walker) stepAbove() error {
	if len(k.rest) == 0 {
		return k.outside("it leads to")
	}
	name := k.rest[0]
	k.rest = k.rest[1:]
	if name == ".." {
		k.at = k.at.parent()
		return nil
	}
	k.at = k.into(name)
	if !k.w.leadsToRoot(k.at) {
		return k.outside("")
	}
	return nil
}

// outside says that the walker is in no root, and how it came there.
func (k *walker) outside(how string) error {
	e := &OutsideError{Path: k.asked.path, Roots: k.w.roots}
	if n := len(k.links); n > 0 {
		e.Link = k.links[n-1].String()
		how = fmt.Sprintf("the link %s leads to", e.Link)
	}
	if how != "" {
		e.Why = fmt.Sprintf("%s %s, which is in none of them", how, k.at)
	} else {
		e.Why = fmt.Sprintf("%s is in none of them", k.at)
	}
	return e
}

// end is the length of rest at which the innermost link's target ends.
func (k *walker) end() int {
	if len(k.ends) == 0 {
		return 0
	}
	return k.ends[len(k.ends)-1]
}

// endLinks forgets the links whose targets were walked to the end. Each must have led into a
// root (A23).
func (k *walker) endLinks() error {
	for len(k.ends) > 0 && len(k.rest) == k.end() {
		if k.root == above {
			return k.outside("it leads to")
		}
		k.ends = k.ends[:len(k.ends)-1]
		k.links = k.links[:len(k.links)-1]
	}
	return nil
}

// maxAttempts is how often something is tried anew because it changed meanwhile.
const maxAttempts = 64

// One step down from a directory that is held by its handle. A name was looked at with Lstat and
// found to be no link; what is opened by that name must be what was seen, so a link
// that took its place meanwhile is noticed, and leads nowhere: it is followed within the directory
// at most. Both return dirfd.ErrChanged then.

// openSeenDir opens the directory name of dir. The "." keeps it from waiting at a FIFO.
func openSeenDir(dir *dirfd.Dir, name string, seen os.FileInfo) (*dirfd.Dir, error) {
	child, err := dir.OpenDir(name)
	if err != nil {
		return nil, recheck(dir, name, seen, err)
	}
	if info, err := child.Lstat("."); err != nil || !os.SameFile(info, seen) {
		_ = child.Close()
		if err != nil {
			return nil, err
		}
		return nil, dirfd.ErrChanged
	}
	return child, nil
}

// openSeenFile opens the file name of dir for reading.
func openSeenFile(dir *dirfd.Dir, name string, seen os.FileInfo) (*os.File, os.FileInfo, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, nil, recheck(dir, name, seen, err)
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(info, seen) {
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, dirfd.ErrChanged
	}
	return f, info, nil
}

// openSeen opens for reading the file name of dir, which was seen, and is what path leads to.
func openSeen(dir *dirfd.Dir, name string, seen dirfd.FileStat, path string) (*os.File, error) {
	if !seen.IsRegular() {
		return nil, unfit(path, seen.Mode())
	}
	f, err := dir.OpenRegular(name)
	if err != nil && err != dirfd.ErrChanged {
		err = failed("open", path, err)
	}
	return f, err
}

// recheck is err, or dirfd.ErrChanged if name is no longer what was seen.
func recheck(dir *dirfd.Dir, name string, seen os.FileInfo, err error) error {
	if now, lstatErr := dir.Lstat(name); lstatErr == nil && !os.SameFile(now, seen) {
		return dirfd.ErrChanged
	}
	return err
}

// retry does it again as long as it fails with dirfd.ErrChanged, up to a limit.
func retry(it func() error) error {
	err := it()
	for range maxAttempts {
		if !errors.Is(err, dirfd.ErrChanged) {
			break
		}
		err = it()
	}
	return err
}

// door is a location through which paths enter a root: its spelling or its real
// path. Behind it is the handle that was opened, whatever stands there by now (C8).
type door struct {
	at   location
	root int
}

// doorsOf lists the doors of the opened roots. Of roots with one real path the first owns
// the doors of all.
func doorsOf(opened []Root, real []location) []door {
	var doors []door
	for i, root := range opened {
		owner := i
		for j := range i {
			if real[j].equal(real[i]) {
				owner = j
				break
			}
		}
		doors = append(doors, door{real[i], owner})
		if spelled := locate(root.Dir.path); !spelled.equal(real[i]) {
			doors = append(doors, door{spelled, owner})
		}
	}
	return doors
}

// enter finds the door deepest on the way to at, and how many of at's names it takes.
func (w *Workspace) enter(at location) (root, names int, ok bool) {
	names = -1
	for _, d := range w.doors {
		if len(d.at.names) > names && at.below(d.at) {
			root, names, ok = d.root, len(d.at.names), true
		}
	}
	return root, names, ok
}

// rootAt is the root whose real path at is.
func (w *Workspace) rootAt(at location) (root int, ok bool) {
	for i, real := range w.real {
		if at.equal(real) {
			return i, true
		}
	}
	return 0, false
}

// leadsToRoot reports whether a root's real path lies below at.
func (w *Workspace) leadsToRoot(at location) bool {
	for _, real := range w.real {
		if real.below(at) {
			return true
		}
	}
	return false
}
