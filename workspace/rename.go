package workspace

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// What [RenameOptions] are where they name no other number.
const (
	DefaultMaxCopied      = 100_000
	DefaultMaxCopiedBytes = 4 << 30
)

// RenameOptions configure [Workspace.Rename].
type RenameOptions struct {
	// Create says whether something must bear the new name. Default CreateOrReplace.
	Create Create
	// From and To, unless zero, are where the paths must lead still (C11): From as [Workspace.Lstat] said.
	// If one leads elsewhere the error is a *[MovedError].
	From, To Ref
	// MaxEntries is the most files, links and directories that are copied to another file system, and
	// MaxBytes the most bytes of them. More is a *[LimitError], and nothing is moved. Defaults
	// [DefaultMaxCopied] and [DefaultMaxCopiedBytes].
	MaxEntries int
	MaxBytes   int64
}

// Rename gives the file, directory or link at from the path to, in the same root or another. Neither path's last
// link is followed: a link is moved itself, and what is relative in it means something else then. What bears the new
// name is replaced, as the system does: a file or a link by one, an empty directory by a directory. It
// returns where the thing is now.
//
// Within a file system that is one step. Between two, everything is copied beside its new place, with permissions
// and times, brought to the disk, and given its name when it is complete; only then is the old one removed. If
// something fails before, both places are as they were; so they are if anything in the old one changed meanwhile, a
// *[ChangedError]. (If its name is taken by then, a *[StrandedError] says where it is.) If the old one
// cannot be removed after that, the error is a *[LeftoverError]. Extended attributes are not copied, and hard
// links within a directory become files.
//
// A root, a denied directory, and whatever holds one is neither moved nor replaced: a *[ProtectedError]. A special
// file (C6) is moved within its file system only, and none is replaced: a *[SpecialFileError]. Nor is a
// file that is marked as read-only.
func (w *Workspace) Rename(ctx context.Context, from, to string, o RenameOptions) (Ref, error) {
	return w.rename(ctx, from, to, o, move)
}

// rename is Rename with what moves a thing within a file system.
func (w *Workspace) rename(ctx context.Context, from, to string, o RenameOptions, by mover) (ref Ref, err error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	source, err := parse(from)
	if err != nil {
		return Ref{}, err
	}
	target, err := parse(to)
	if err != nil {
		return Ref{}, err
	}
	setDefault(&o.MaxEntries, DefaultMaxCopied)
	setDefault(&o.MaxBytes, DefaultMaxCopiedBytes)
	err = w.atSlot(source, func(s slot) error {
		if err := w.take("rename", s); err != nil {
			return err
		}
		if err := expect(from, o.From, w.ref(s.root, s.at)); err != nil {
			return err
		}
		return w.atSlotOnce(target, func(t slot) error {
			ref = w.ref(t.root, t.at)
			r := renaming{w: w, from: s, to: t, o: o, by: by}
			return r.run(ctx)
		})
	})
	var left *LeftoverError
	if err != nil && !errors.As(err, &left) {
		return Ref{}, err
	}
	return ref, err
}

// renaming is one call of Rename whose paths were walked.
type renaming struct {
	w        *Workspace
	from, to slot
	o        RenameOptions
	by       mover
}

// mover gives what is in one slot the name of another in one step. It fails with EXDEV if that takes more.
type mover func(w *Workspace, from, to slot, create Create) error

func (r *renaming) run(ctx context.Context) error {
	if err := r.permit(); err != nil {
		return err
	}
	if r.to.at.String() == r.from.at.String() {
		return nil // it bears that name already; one in another case is another
	}
	err := r.by(r.w, r.from, r.to, r.o.Create)
	if errors.Is(err, syscall.EXDEV) {
		return r.copy(ctx)
	}
	if err != nil {
		return r.failed(err)
	}
	return nil
}

// permit says whether the new name may be taken.
func (r *renaming) permit() error {
	path, dir := r.to.asked.path, r.from.info.IsDir()
	if err := expect(path, r.o.To, r.w.ref(r.to.root, r.to.at)); err != nil {
		return err
	}
	if r.to.name == "" {
		return r.w.take("rename", r.to)
	}
	if r.to.at.below(r.from.at) && !r.to.at.equal(r.from.at) { // a directory into itself
		return r.failed(syscall.EINVAL)
	}
	if r.to.info == nil {
		switch {
		case r.o.Create == ReplaceOnly:
			return r.failed(syscall.ENOENT)
		case r.to.asked.dir && !dir:
			return r.failed(syscall.ENOTDIR)
		default:
			return nil
		}
	}
	switch mode := r.to.info.Mode(); {
	case r.o.Create == CreateOnly:
		return r.failed(syscall.EEXIST)
	case mode&fs.ModeSymlink == 0 && !mode.IsRegular() && !mode.IsDir():
		return unfit(path, mode)
	case mode.IsRegular() && readOnlyFile(r.to.info):
		return r.failed(fs.ErrPermission)
	case mode.IsDir() && !dir:
		return r.failed(syscall.EISDIR)
	case !mode.IsDir() && (dir || r.to.asked.dir):
		return r.failed(syscall.ENOTDIR)
	default:
		return r.w.guard(path, r.to.at, r.to.info)
	}
}

func (r *renaming) failed(err error) error {
	return failed("rename", r.from.asked.path, err)
}
