package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
)

// DefaultMaxRoots is the default of Options.MaxRoots.
const DefaultMaxRoots = 64

const defaultMaxEntries = 250_000

// Options configure [Open].
type Options struct {
	// MaxRoots is the maximum number of roots, cwd included. Zero means [DefaultMaxRoots].
	MaxRoots int
	// Mounts says which mounts below a root belong to it. "" means ExistingMounts.
	Mounts Mounts
	// MaxEntries is the maximum number of entries that are listed of a directory. Listing a larger
	// one fails with a *[LimitError] and returns that many. Zero means 250,000.
	MaxEntries int
	// Policy says which directories may be roots, and which may never be reached.
	Policy Policy
	// Stalled counts the calls of Open that the system keeps waiting. A program shares one in all
	// its options. Nil means that they are not limited.
	Stalled *Stalled

	patience time.Duration // zero means openPatience
}

// openPatience is how long Open waits for the file systems of the roots. That of a mount whose
// server is gone may never answer.
const openPatience = 10 * time.Second

// Stalled counts the calls of [Open] that were given up and have not returned from the system. Each
// keeps a thread, of which a process has only so many, so while 64 of them wait, others are
// refused. The zero value is ready for use, by several goroutines too.
type Stalled struct{ calls atomic.Int32 }

const maxStalled = 64

// Workspace is an opened root set. It is safe for concurrent use.
//
// Its methods resolve paths like the operating system does: they follow links as far as these stay
// in the roots, ".." is the parent of the directory that was really reached, and a relative path
// starts at cwd. Their errors are [*OutsideError], [*DeniedError], [*RefusedError],
// [*SpecialFileError], [ErrClosed], one that says why, or the system's in an *[fs.PathError].
type Workspace struct {
	*core
	check func(Access) error // nil if everything in the roots may be used
}

// core is shared by a Workspace and those that [Workspace.Checked] made of it.
type core struct {
	roots  Roots
	opened openRoots
	denied denials // of what lies in a root
	policy Policy

	maxEntries int
	opening    atomic.Int32 // the root that Open is at
	locks      fileLocks
	swept      sync.Map // the real paths of directories where sweep was

	mu      sync.Mutex
	running int
	closed  bool
}

// Open opens every root of the set, or none. The caller closes the Workspace. The error is a
// [RootErrors], or the context's. Open checks in steps, and reports everything wrong in the first
// step that fails: first too many roots, then directories that cannot be opened, then those the
// policy denies. If the policy allows only some directories, others are denied before they are
// opened, so that the error does not reveal what exists.
//
// A directory whose file system does not answer within ten seconds cannot be opened. Neither can
// any, without waiting, while Options.Stalled has too many such attempts.
func Open(ctx context.Context, roots Roots, o Options) (*Workspace, error) {
	if err := checkCount(roots, cmp.Or(o.MaxRoots, DefaultMaxRoots)); err != nil {
		return nil, err
	}
	w := &Workspace{core: &core{roots: roots, denied: findDenials(o.Policy.Deny), policy: o.Policy,
		maxEntries: cmp.Or(max(o.MaxEntries, 0), defaultMaxEntries)}}
	stalled := cmp.Or(o.Stalled, new(Stalled))
	if stalled.calls.Load() >= maxStalled {
		return nil, RootErrors{w.rootError(0, ReasonUnreadable, "other folders do not answer")}
	}
	opened := make(chan error, 1)
	go func() { opened <- w.open(ctx, o) }()
	timer := time.NewTimer(cmp.Or(o.patience, openPatience))
	defer timer.Stop()
	var err error
	select {
	case err = <-opened:
		if err != nil {
			return nil, err
		}
		return w, nil
	case <-timer.C:
		err = RootErrors{w.rootError(int(w.opening.Load()), ReasonUnreadable, noAnswer)}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stalled.calls.Add(1)
	go func() { // ends when the system answers
		defer stalled.calls.Add(-1)
		if <-opened == nil {
			_ = w.Close()
		}
	}()
	return nil, err
}

// noAnswer is the detail of a root whose file system does not answer.
const noAnswer = "its file system does not answer, as when the server of a mount is gone"

// open opens the roots. If it fails, it leaves nothing open.
func (w *Workspace) open(ctx context.Context, o Options) (err error) {
	if o.Policy.OnlyAllowed {
		err = w.checkPaths(o.Policy)
	}
	if err == nil {
		err = w.openRoots(ctx)
	}
	if err == nil {
		err = w.checkPolicy(o.Policy)
	}
	if err == nil {
		err = w.guardRoots(cmp.Or(o.Mounts, ExistingMounts))
	}
	if err != nil {
		w.opened.close()
		return err
	}
	given := w.opened.list()
	for i, root := range given { // two paths may lead to one directory
		w.opened[i].Grant, _ = GrantOf(root.Real, given)
	}
	w.denied = w.denied.in(w.opened)
	return nil
}

func checkCount(roots Roots, limit int) error {
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
		w.opening.Store(int32(i))
		if err := w.opened.open(dir, w.roots.Grant(dir)); err != nil {
			errs = append(errs, w.openError(i, err))
		}
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

// checkPaths checks, before anything is opened, where each root leads as far as it exists.
func (w *Workspace) checkPaths(p Policy) error {
	var errs RootErrors
	for i, dir := range w.roots.All() {
		w.opening.Store(int32(i))
		if !p.allows(resolveDir(dir)) {
			errs = append(errs, w.notAllowed(i, p))
		}
	}
	return errs.err()
}

// checkPolicy checks the real path of each root against the policy.
func (w *Workspace) checkPolicy(p Policy) error {
	var errs RootErrors
	for i, root := range w.opened {
		if by, denied := w.denied.find(root.at); denied {
			errs = append(errs, w.rootError(i, ReasonDenied, by.path))
		} else if !p.allows(root.at) {
			errs = append(errs, w.notAllowed(i, p))
		}
	}
	return errs.err()
}

// guardRoots restricts what can be reached through each root's handle.
func (w *Workspace) guardRoots(policy Mounts) error {
	var points []location
	if policy == ExistingMounts {
		for _, path := range dirfd.MountPoints() {
			points = append(points, locate(path))
		}
	}
	var errs RootErrors
	for i, root := range w.opened {
		w.opening.Store(int32(i))
		guard, err := root.newGuard(policy, points, w.denied)
		if denied, ok := errors.AsType[*DeniedError](err); ok {
			errs = append(errs, w.rootError(i, ReasonDenied, denied.By.path))
			continue
		}
		if err != nil {
			errs = append(errs, w.openError(i, err))
			continue
		}
		root.handle.SetGuard(guard)
	}
	return errs.err()
}

func (w *Workspace) rootError(i int, reason Reason, detail string) RootError {
	return RootError{Root: w.roots.sent(i), Path: w.roots.At(i).path, Reason: reason,
		Detail: detail}
}

// notAllowed is the error for root i if the policy allows other directories only.
func (w *Workspace) notAllowed(i int, p Policy) RootError {
	e := w.rootError(i, ReasonDenied, "")
	e.Allowed = p.Allow
	return e
}

// Roots returns the root set that was opened.
func (w *Workspace) Roots() Roots { return w.roots }

// Opened returns the roots in order, cwd first. The caller owns the slice.
func (w *Workspace) Opened() []Root { return w.opened.list() }

// Root returns root i, cwd for 0. It panics if i is out of range.
func (w *Workspace) Root(i int) Root { return w.opened[i].Root }

// Close makes later operations fail with [ErrClosed]. It does not wait for running ones; the last
// of them closes the roots' directories. Files and directories that were opened stay readable until
// they are closed. A second Close does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.releaseLocked()
	return nil
}

// begin starts an operation, which must end with end.
func (w *Workspace) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.running++
	return nil
}

// beginAt parses path and starts an operation on it, which must end with end unless beginAt fails.
func (w *Workspace) beginAt(path string) (parsedPath, error) {
	if err := w.begin(); err != nil {
		return parsedPath{}, err
	}
	a, err := parse(path)
	if err != nil {
		w.end()
	}
	return a, err
}

func (w *Workspace) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.releaseLocked()
}

// releaseLocked closes the roots' directories once no operation needs them.
func (w *Workspace) releaseLocked() {
	if w.closed && w.running == 0 {
		w.opened.close()
	}
}

// Labels returns a short name for each root, in order: the name of its directory, with as many
// parent directories as are needed to tell the roots apart.
func (w *Workspace) Labels() []string {
	labels := make([]string, len(w.opened))
	for parts := 1; ; parts++ {
		uses := make(map[string]int)
		for _, label := range labels {
			uses[label]++
		}
		longer := false
		for i, r := range w.opened {
			if label := lastParts(r.Dir.path, parts); uses[labels[i]] > 1 || parts == 1 {
				longer = longer || label != labels[i]
				labels[i] = label
			}
		}
		if !longer {
			return labels
		}
	}
}

// lastParts returns the last n components of a path, or the whole path if it has fewer.
func lastParts(path string, n int) string {
	parts := strings.FieldsFunc(filepath.ToSlash(path), func(r rune) bool { return r == '/' })
	if n > len(parts) || len(parts) == 0 {
		return filepath.ToSlash(path)
	}
	return strings.Join(parts[len(parts)-n:], "/")
}

// State says what has happened to a root since it was opened, for a person. The workspace always
// uses the directory that it opened.
type State string

// The states of a root.
const (
	OK          State = "ok"          // the path leads to the directory that was opened
	Moved       State = "moved"       // nothing is at the path; the directory is elsewhere
	Replaced    State = "replaced"    // the path leads to something else
	Missing     State = "missing"     // nothing is at the path, and the directory cannot be found
	Unreachable State = "unreachable" // the path cannot be looked up
)

// State returns the state of root i, cwd for 0. It panics if i is out of range. The error is
// ErrClosed.
func (w *Workspace) State(i int) (State, error) {
	if err := w.begin(); err != nil {
		return "", err
	}
	defer w.end()
	return w.opened[i].state(), nil
}
