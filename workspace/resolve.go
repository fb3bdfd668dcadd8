package workspace

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
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
	toOpen    // follow it; whoever opens what is there needs no info
)

// arrival is where a path led: name in the directory dir, or dir itself if name is "". info is nil if
// there is nothing of that name, and for toOpen; seen is zero for dir itself. The handle is valid until
// its walker closes.
type arrival struct {
	dir  *handle
	name string
	seen sight
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
	at    location  // the real path reached: no links, no ".."; the names are the walker's own
	trail []*handle // directories entered below the root, outermost first

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
	if err == errChanging {
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
	child, err := k.here().into(name)
	switch {
	case err == nil:
		k.rest = k.rest[1:]
		k.trail = append(k.trail, child)
		k.at = at
		return arrival{}, false, nil
	case !notEntered(err):
		return arrival{}, false, k.failed(err)
	}
	seen, err := k.here().look(name)
	switch {
	case err != nil:
		return arrival{}, false, k.failed(err)
	case seen.isLink():
		k.rest = k.rest[1:]
		return arrival{}, false, k.follow(name, at)
	case seen.isDir():
		return arrival{}, false, errChanging
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
	seen, err := k.here().look(name)
	switch {
	case k.last == orMissing && !k.asked.dir && errors.Is(err, fs.ErrNotExist):
		return arrival{k.here(), name, sight{}, nil, k.kept(at), k.root}, true, nil
	case err != nil:
		return arrival{}, false, k.failed(err)
	}
	switch {
	case seen.isLink() && (k.last != keepLast || k.asked.dir):
		k.rest = k.rest[1:]
		return arrival{}, false, k.follow(name, at)
	case k.asked.dir && !seen.isDir():
		return arrival{}, false, k.failed(syscall.ENOTDIR)
	}
	end, err = k.arrive(name, at)
	if err == nil && end.info != nil && !seen.is(end.info) {
		err = errChanging
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
func (k *walker) here() *handle {
	if n := len(k.trail); n > 0 {
		return k.trail[n-1]
	}
	return k.w.handles[k.root]
}

func (k *walker) failed(err error) error { return failed("open", k.asked.path, err) }
