package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/dirfd"
)

// Workspace is an opened root set. It is safe for concurrent use. [Open] makes one,
// and Close ends it: operations that run finish, later ones fail with [ErrClosed].
//
// Its methods take paths as an operating system does: links are followed as far as clause A23
// allows, ".." is the parent of where one really is, and a relative path starts at cwd. Their
// errors are [*OutsideError], [*TooManyLinksError], [*DeniedError], [*MountError], [*SpecialFileError],
// ErrClosed, or what the system said in an *[fs.PathError].
type Workspace struct {
	roots   Roots
	opened  []Root
	handles []*dirfd.Dir  // of opened, one each
	real    []location    // of opened, one each
	guards  []dirfd.Guard // of opened, one each; nil if everything may be reached
	doors   []door
	denied  []denial

	maxEntries int
	buffers    sync.Pool // of *[]byte, to list directories with

	mu      sync.Mutex
	running int
	closed  bool
}

// Roots is the root set that was opened.
func (w *Workspace) Roots() Roots { return w.roots }

// Opened are the roots in order, cwd first. The caller owns the slice.
func (w *Workspace) Opened() []Root { return append([]Root(nil), w.opened...) }

// Root is root i, cwd for 0. It panics if i is out of range.
func (w *Workspace) Root(i int) Root { return w.opened[i] }

// Close makes every later operation fail with [ErrClosed], and waits for none. The
// directories are let go when the last running operation has ended. Files and directories
// that were opened stay readable until they are closed. A second Close does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.release()
	return nil
}

// begin enters an operation, which must end with end.
func (w *Workspace) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running++
	return nil
}

func (w *Workspace) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.release()
}

// buffer is one to list a directory with, which goes back to buffers.
func (w *Workspace) buffer() *[]byte {
	if buf, ok := w.buffers.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, dirfd.ListBuffer)
	return &buf
}

// release lets the directories go once nobody needs them. The caller holds mu.
func (w *Workspace) release() {
	if w.closed && w.running == 0 {
		closeAll(w.handles)
	}
}

func closeAll(handles []*dirfd.Dir) {
	for _, handle := range handles {
		_ = handle.Close()
	}
}

// Open opens every root of the set, or none. The caller closes the Workspace. The error is a [RootErrors], or the
// context's. Each step reports everything it finds wrong: first too many roots; then directories that cannot be opened;
// then those the policy denies.
func Open(ctx context.Context, roots Roots, o Options) (*Workspace, error) {
	if err := checkCount(roots, o.MaxRoots); err != nil {
		return nil, err
	}
	w := &Workspace{roots: roots, denied: denials(o.Policy.Deny), maxEntries: o.MaxEntries}
	if w.maxEntries <= 0 {
		w.maxEntries = DefaultMaxEntries
	}
	err := w.openRoots(ctx)
	if err == nil {
		err = w.checkPolicy(o.Policy)
	}
	if err == nil {
		err = w.guardRoots(o.Mounts)
	}
	if err != nil {
		closeAll(w.handles)
		return nil, err
	}
	w.doors = doorsOf(w.opened, w.real)
	return w, nil
}

// checkCount rejects a set without roots, and one with too many.
func checkCount(roots Roots, limit int) error {
	limit = cmp.Or(limit, DefaultMaxRoots)
	switch {
	case roots.IsZero():
		return RootErrors{{Reason: ReasonEmpty}}
	case roots.Len() > limit:
		return RootErrors{{Root: -1, Reason: ReasonTooMany, Detail: strconv.Itoa(limit)}}
	default:
		return nil
	}
}

// openRoots opens each root and finds its real path.
func (w *Workspace) openRoots(ctx context.Context) error {
	var errs RootErrors
	for i, dir := range w.roots.All() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		handle, err := dirfd.Open(dir.path)
		if err != nil {
			errs = append(errs, w.openError(i, err))
			continue
		}
		w.handles = append(w.handles, handle)
		real, err := handle.RealPath(dir.path)
		if err != nil {
			errs = append(errs, w.openError(i, err))
			continue
		}
		w.opened = append(w.opened, Root{Index: i, Dir: dir, Real: Dir{real}})
		w.real = append(w.real, locate(real))
	}
	return errs.err()
}

// openError explains why root i could not be opened.
func (w *Workspace) openError(i int, err error) RootError {
	info, statErr := os.Stat(w.roots.At(i).path)
	switch {
	case statErr == nil && !info.IsDir():
		return w.rootError(i, ReasonNotDirectory, "")
	case errors.Is(statErr, fs.ErrNotExist), errors.Is(statErr, syscall.ENOTDIR):
		return w.rootError(i, ReasonMissing, "")
	default:
		return w.rootError(i, ReasonUnreadable, cause(err).Error())
	}
}

func (w *Workspace) rootError(i int, reason Reason, detail string) RootError {
	return RootError{Root: w.roots.sent(i), Path: w.roots.At(i).path, Reason: reason, Detail: detail}
}

// guardRoots restricts what is reached through each root's handle.
func (w *Workspace) guardRoots(policy Mounts) error {
	var points []string
	if policy == ExistingMounts {
		points = dirfd.MountPoints()
	}
	var errs RootErrors
	for i, handle := range w.handles {
		guard, err := w.newGuard(handle, w.real[i], policy, points)
		if err != nil {
			errs = append(errs, w.openError(i, err))
			continue
		}
		handle.SetGuard(guard)
		w.guards = append(w.guards, guard)
	}
	return errs.err()
}

// cause is what the system said, without the names that we gave it.
func cause(err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	if linkErr := (*os.LinkError)(nil); errors.As(err, &linkErr) {
		return linkErr.Err
	}
	return err
}

// checkPolicy checks the real path of each root against the policy.
func (w *Workspace) checkPolicy(p Policy) error {
	var errs RootErrors
	for i, real := range w.real {
		if by, denied := judge(w.denied, real); denied {
			errs = append(errs, w.rootError(i, ReasonDenied, by.path))
		} else if !allows(p.Allow, real) {
			errs = append(errs, w.rootError(i, ReasonDenied, ""))
		}
	}
	return errs.err()
}

// DefaultMaxRoots is the most roots of a set where Options name no other number.
const DefaultMaxRoots = 64

// DefaultMaxEntries is the most entries of a directory where Options name no other number.
const DefaultMaxEntries = 250_000

// Options configure [Open].
type Options struct {
	// MaxRoots is the most roots a set may have, cwd included. Default 64 (A6).
	MaxRoots int
	// Mounts says which mounts below a root belong to it. Default ExistingMounts (C7).
	Mounts Mounts
	// MaxEntries is the most entries of a directory that are listed. Default 250,000. A larger one is
	// listed so far, and a *[LimitError] says so.
	MaxEntries int
	// Policy says which directories may be roots.
	Policy Policy
}

// Policy is judged on real paths. The zero value allows everything.
type Policy struct {
	// Allow, if not empty, lists the directories in or below which every root must lie.
	Allow []Dir
	// Deny lists directories that no root may lie in or below. One that lies below a
	// root is refused at each access.
	Deny []Dir
}

// State is what became of a root since it was opened. The session keeps to the directory that it was
// granted, whatever its state (C8); this is for showing to a person.
type State string

// The states of a root.
const (
	// OK: the path leads to the directory that was granted.
	OK State = "ok"
	// Moved: nothing is at the path, and the directory is somewhere else.
	Moved State = "moved"
	// Replaced: the path leads to something else.
	Replaced State = "replaced"
	// Missing: nothing is at the path, and the directory is not to be found.
	Missing State = "missing"
	// Unreachable: the path cannot be looked up.
	Unreachable State = "unreachable"
)

// State is the state of root i, cwd for 0. It panics if i is out of range. The error is ErrClosed.
func (w *Workspace) State(i int) (State, error) {
	if err := w.begin(); err != nil {
		return "", err
	}
	defer w.end()
	there, err := os.Stat(w.opened[i].Dir.path)
	switch {
	case err == nil:
		granted, err := w.handles[i].Lstat(".")
		if err == nil && os.SameFile(there, granted) {
			return OK, nil
		}
		return Replaced, nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return Unreachable, nil
	}
	if _, err := w.handles[i].RealPath(w.opened[i].Dir.path); err == nil {
		return Moved, nil
	}
	return Missing, nil
}
