package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
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
)

// arrival is where a path led: name in the directory dir, or dir itself if name is "". info is nil if
// there is nothing of that name. It is valid until its walker closes.
type arrival struct {
	dir  *handle
	name string
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

	root  int       // the root that the walker is in, or above
	at    location  // the real path reached: no links, no ".."
	trail []*handle // directories entered below the root, outermost first

	rest  []string // the names to go
	ends  []int    // for each link being walked: len(rest) at the end of its target
	links []string // and the link itself, for a person
	hops  int
	steps int
}

// walk calls use with the arrival of a path, and does both again if something changed under
// their feet.
func (w *Workspace) walk(a asked, last lastLink, use func(arrival) error) error {
	return retry(func() error { return w.walkOnce(a, last, use) })
}

func (w *Workspace) walkOnce(a asked, last lastLink, use func(arrival) error) error {
	k := &walker{w: w, asked: a, last: last, root: above, at: location{top: a.at.top}, rest: a.at.names}
	defer k.leave()
	if a.at.top == "" {
		k.enter(w.doors[0].root)
	}
	end, err := k.run()
	if err != nil {
		return err
	}
	if err := w.allowed(a.path, end.at); err != nil {
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
			return k.arriveAtRoot()
		}
		end, arrived, err := k.step()
		if arrived || err != nil {
			return end, err
		}
	}
}

// approach goes through the deepest door on the way, if there is one.
func (k *walker) approach() bool {
	ahead := k.at.child(k.rest[:len(k.rest)-k.end()]...)
	root, taken, ok := k.w.enter(ahead)
	if !ok {
		return false
	}
	// The door may lie behind, when ".." led out of a root inside another.
	k.rest = append(ahead.names[taken:len(ahead.names):len(ahead.names)], k.rest[len(k.rest)-k.end():]...)
	k.enter(root)
	return true
}

// stepAbove takes one name above the roots: only towards a root.
func (k *walker) stepAbove() error {
	if len(k.rest) == 0 {
		return outside(k.asked.path, "it leads to %s, which is in none of them", k.at)
	}
	name := k.rest[0]
	k.rest = k.rest[1:]
	if name == ".." {
		k.at = k.at.parent()
		return nil
	}
	k.at = k.at.child(name)
	if !k.w.leadsToRoot(k.at) {
		if len(k.links) > 0 {
			return outside(k.asked.path, "the link %s leads to %s, which is in none of them", k.links[len(k.links)-1], k.at)
		}
		return outside(k.asked.path, "%s is in none of them", k.at)
	}
	return nil
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
			return outside(k.asked.path, "the link %s leads to %s, which is in none of them", k.links[len(k.links)-1], k.at)
		}
		k.ends = k.ends[:len(k.ends)-1]
		k.links = k.links[:len(k.links)-1]
	}
	return nil
}

// step takes one name inside a root. It reports whether the path ends there.
func (k *walker) step() (end arrival, arrived bool, err error) {
	name := k.rest[0]
	if name == ".." {
		k.rest = k.rest[1:]
		k.up()
		return arrival{}, false, nil
	}
	at := k.at.child(name)
	if root, ok := k.w.rootAt(at); ok {
		k.rest = k.rest[1:]
		k.enter(root)
		return arrival{}, false, nil
	}
	info, err := k.here().Lstat(name)
	last := len(k.rest) == 1
	switch {
	case last && k.last == orMissing && !k.asked.dir && errors.Is(err, fs.ErrNotExist):
		return arrival{k.here(), name, nil, at, k.root}, true, nil
	case err != nil:
		return arrival{}, false, k.failed(err)
	}
	k.rest = k.rest[1:]
	switch {
	case info.Mode()&os.ModeSymlink != 0 && !(last && k.last == keepLast && !k.asked.dir):
		return arrival{}, false, k.follow(name, at, info)
	case last && (info.IsDir() || !k.asked.dir):
		return arrival{k.here(), name, info, at, k.root}, true, nil
	case !info.IsDir():
		return arrival{}, false, k.failed(syscall.ENOTDIR)
	}
	child, err := stepInto(k.here(), name, info)
	if err != nil {
		return arrival{}, false, k.failed(err)
	}
	k.trail = append(k.trail, child)
	k.at = at
	return arrival{}, false, nil
}

// follow puts the target of the link name, which is at, in its place.
func (k *walker) follow(name string, at location, seen os.FileInfo) error {
	if k.hops++; k.hops > maxLinks {
		return k.failed(syscall.ELOOP)
	}
	target, err := k.here().Readlink(name)
	if err != nil {
		return k.failed(recheck(k.here(), name, seen, err))
	}
	top, names, dir := native{}.split(target)
	if len(k.rest) == 0 && dir {
		k.asked.dir = true
	}
	k.ends = append(k.ends, len(k.rest))
	k.links = append(k.links, at.String())
	k.rest = append(names, k.rest...)
	if top != "" {
		k.leave()
		k.root = above
		k.at = location{top: top}
	}
	return nil
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
	k.at = k.w.real[root]
}

// leave closes the directories entered below the root.
func (k *walker) leave() {
	closeAll(k.trail)
	k.trail = k.trail[:0]
}

// here is the directory that the walker is in.
func (k *walker) here() *handle {
	if n := len(k.trail); n > 0 {
		return k.trail[n-1]
	}
	return k.w.handles[k.root]
}

// arriveAtRoot ends the path at the directory that the walker is in.
func (k *walker) arriveAtRoot() (arrival, error) {
	info, err := k.here().Lstat(".")
	if err != nil {
		return arrival{}, k.failed(err)
	}
	return arrival{k.here(), "", info, k.at, k.root}, nil
}

func (k *walker) failed(err error) error { return failed("open", k.asked.path, err) }
