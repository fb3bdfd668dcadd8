package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/acp-agent/acp-agent/internal/strictjson"
)

// Open opens every root of the set, or none. Each stage reports all that it finds
// wrong, in this order (A5, A6): too many roots; directories that are missing, not
// directories, or not to be entered; real paths that the policy refuses. The error is a
// [*violation.Error], or the context's. The caller closes the Workspace.
func Open(ctx context.Context, roots Roots, o Options) (*Workspace, error) {
	if err := counted(roots, o.MaxRoots); err != nil {
		return nil, err
	}
	w := &Workspace{roots: roots, denied: denials(o.Policy.Deny), maxEntries: o.MaxEntries}
	if w.maxEntries <= 0 {
		w.maxEntries = DefaultMaxEntries
	}
	err := w.openRoots(ctx)
	if err == nil {
		err = w.judgeRoots(o.Policy)
	}
	if err == nil {
		err = w.grantMounts(o.Mounts)
	}
	if err != nil {
		closeAll(w.handles)
		return nil, err
	}
	w.doors = doorsOf(w.opened, w.real)
	return w, nil
}

// counted refuses a set of no roots and one of too many.
func counted(roots Roots, limit int) error {
	if limit == 0 {
		limit = DefaultMaxRoots
	}
	switch {
	case roots.IsZero():
		return strictjson.Refuse(strictjson.NewViolation(fieldCwd, nil, strictjson.Required))
	case roots.Len() > limit:
		return strictjson.Refuse(strictjson.NewViolation(fieldAdditional, nil, strictjson.TooMany).Expecting(strconv.Itoa(limit)))
	default:
		return nil
	}
}

// openRoots opens each root and finds its real path.
func (w *Workspace) openRoots(ctx context.Context) error {
	var bad []strictjson.Violation
	for i, dir := range w.roots.All() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		handle, err := openDirectory(dir.path)
		if err != nil {
			bad = append(bad, w.refusal(i, err))
			continue
		}
		w.handles = append(w.handles, handle)
		real, err := realPathOf(handle, dir.path)
		if err != nil {
			bad = append(bad, w.refusal(i, err))
			continue
		}
		w.opened = append(w.opened, Root{Index: i, Dir: dir, Real: Dir{real}})
		w.real = append(w.real, locate(real))
	}
	return strictjson.Refuse(bad...)
}

// refusal is why root i could not be opened.
func (w *Workspace) refusal(i int, err error) strictjson.Violation {
	info, statErr := os.Stat(w.roots.At(i).path)
	switch {
	case statErr == nil && !info.IsDir():
		return w.roots.violation(i, strictjson.NotDirectory)
	case errors.Is(statErr, fs.ErrNotExist), errors.Is(statErr, syscall.ENOTDIR):
		return w.roots.violation(i, strictjson.Missing)
	default:
		return w.roots.violation(i, strictjson.Unreadable).Expecting(cause(err).Error())
	}
}

// grantMounts makes each root's handle reach what is mounted below it, as far as the policy says.
func (w *Workspace) grantMounts(policy Mounts) error {
	var points []location
	if policy == ExistingMounts {
		points = mountPoints()
	}
	var bad []strictjson.Violation
	for i, handle := range w.handles {
		if err := handle.grant(policy, w.real[i], points, w.denied); err != nil {
			bad = append(bad, w.refusal(i, err))
		}
	}
	return strictjson.Refuse(bad...)
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

// judgeRoots checks the real path of each root against the policy.
func (w *Workspace) judgeRoots(p Policy) error {
	var bad []strictjson.Violation
	for i, real := range w.real {
		if by, denied := judge(w.denied, real); denied {
			bad = append(bad, w.roots.violation(i, strictjson.Denied).Expecting(by.path))
		} else if !allows(p.Allow, real) {
			bad = append(bad, w.roots.violation(i, strictjson.Denied))
		}
	}
	return strictjson.Refuse(bad...)
}
