package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
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

// Open opens every root of the set, or none. The caller closes the Workspace. The error is a
// [RootErrors], or the context's. Open checks in steps, and reports everything wrong in the first
// step that fails: first too many roots, then directories that cannot be opened, then those the
// policy denies. If the policy allows only some directories, others are denied before they are
// opened, so that the error does not reveal what exists.
//
// A directory whose file system does not answer within ten seconds cannot be opened. Neither can
// any, without waiting, while Options.Stalled has too many such attempts.
func Open(ctx context.Context, roots Roots, o Options) (*Workspace, error) {
	switch limit := cmp.Or(o.MaxRoots, DefaultMaxRoots); {
	case roots.IsZero():
		return nil, RootErrors{{Reason: ReasonEmpty}}
	case roots.Len() > limit:
		return nil, RootErrors{{Root: -1, Reason: ReasonTooMany, Detail: strconv.Itoa(limit)}}
	}
	opening := &opening{roots: roots, policy: o.Policy, denied: findDenials(o.Policy.Deny),
		mounts: cmp.Or(o.Mounts, ExistingMounts)}
	stalled := cmp.Or(o.Stalled, new(Stalled))
	if stalled.calls.Load() >= maxStalled {
		return nil, RootErrors{opening.rootError(0, ReasonUnreadable, "other folders do not answer")}
	}
	type result struct {
		opened openRoots
		err    error
	}
	results := make(chan result, 1)
	go func() {
		opened, err := opening.run(ctx)
		results <- result{opened, err}
	}()
	timer := time.NewTimer(cmp.Or(o.patience, openPatience))
	defer timer.Stop()
	var err error
	select {
	case r := <-results:
		if r.err != nil {
			return nil, r.err
		}
		return &Workspace{core: &core{roots: roots, opened: r.opened,
			denied: opening.denied.in(r.opened), policy: o.Policy,
			maxEntries: cmp.Or(max(o.MaxEntries, 0), defaultMaxEntries)}}, nil
	case <-timer.C:
		const noAnswer = "its file system does not answer, as when the server of a mount is gone"
		err = RootErrors{opening.rootError(int(opening.at.Load()), ReasonUnreadable, noAnswer)}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stalled.calls.Add(1)
	go func() { // ends when the system answers
		defer stalled.calls.Add(-1)
		late := <-results
		late.opened.close()
	}()
	return nil, err
}

// opening is a running [Open].
type opening struct {
	roots  Roots
	policy Policy
	denied denials
	mounts Mounts

	at atomic.Int32 // the root that the system is asked about
}

// run opens the roots. If it fails, it leaves nothing open.
func (o *opening) run(ctx context.Context) (openRoots, error) {
	if o.policy.OnlyAllowed {
		if err := o.checkPaths(); err != nil {
			return nil, err
		}
	}
	opened, err := o.open(ctx)
	if err == nil {
		err = o.checkPolicy(opened)
	}
	if err == nil {
		err = o.guard(opened)
	}
	if err != nil {
		opened.close()
		return nil, err
	}
	given := opened.list()
	for i, root := range given { // two paths may lead to one directory
		opened[i].Grant, _ = GrantOf(root.Real, given)
	}
	return opened, nil
}

// checkPaths checks, before anything is opened, where each root leads as far as it exists.
func (o *opening) checkPaths() error {
	var errs RootErrors
	for i, dir := range o.roots.All() {
		o.at.Store(int32(i))
		if !o.policy.allows(resolveDir(dir)) {
			errs = append(errs, o.notAllowed(i))
		}
	}
	return errs.err()
}

// open opens each root and finds its real path. With an error it returns those that are open.
func (o *opening) open(ctx context.Context) (opened openRoots, err error) {
	var errs RootErrors
	for i, dir := range o.roots.All() {
		if ctx.Err() != nil {
			return opened, context.Cause(ctx)
		}
		o.at.Store(int32(i))
		root, err := opened.open(dir, o.roots.Grant(dir))
		if err != nil {
			errs = append(errs, o.openError(i, err))
			continue
		}
		opened = append(opened, root)
	}
	return opened, errs.err()
}

// checkPolicy checks the real path of each root against the policy.
func (o *opening) checkPolicy(opened openRoots) error {
	var errs RootErrors
	for i, root := range opened {
		if by, denied := o.denied.find(root.at); denied {
			errs = append(errs, o.rootError(i, ReasonDenied, by.path))
		} else if !o.policy.allows(root.at) {
			errs = append(errs, o.notAllowed(i))
		}
	}
	return errs.err()
}

// guard restricts what can be reached through each root's handle.
func (o *opening) guard(opened openRoots) error {
	var points []location
	if o.mounts == ExistingMounts {
		for _, path := range dirfd.MountPoints() {
			points = append(points, locate(path))
		}
	}
	var errs RootErrors
	for i, root := range opened {
		o.at.Store(int32(i))
		guard, err := root.newGuard(o.mounts, points, o.denied)
		if err != nil {
			errs = append(errs, o.openError(i, err))
			continue
		}
		root.handle.SetGuard(guard)
	}
	return errs.err()
}

// openError explains why root i could not be opened.
func (o *opening) openError(i int, err error) RootError {
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		return o.rootError(i, ReasonDenied, denied.By.path)
	}
	info, statErr := os.Stat(o.roots.At(i).path)
	switch {
	case statErr == nil && !info.IsDir():
		return o.rootError(i, ReasonNotDirectory, "")
	case errors.Is(statErr, fs.ErrNotExist), errors.Is(statErr, syscall.ENOTDIR):
		return o.rootError(i, ReasonMissing, "")
	default:
		return o.rootError(i, ReasonUnreadable, cause(err).Error())
	}
}

func (o *opening) rootError(i int, reason Reason, detail string) RootError {
	root := o.roots.dirs.list[i]
	return RootError{Root: root.sent, Path: root.dir.path, Reason: reason, Detail: detail}
}

// notAllowed is the error for root i if the policy allows other directories only.
func (o *opening) notAllowed(i int) RootError {
	e := o.rootError(i, ReasonDenied, "")
	e.Allowed = o.policy.Allow
	return e
}
