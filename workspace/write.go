package workspace

import (
	"context"
	"io/fs"
	"os"
)

// DefaultMaxWrite is the most bytes of a file that is written where WriteOptions name no other number.
const DefaultMaxWrite = 64 << 20

// Create says what WriteFile makes of a file that is there, or is not.
type Create int

const (
	// CreateOrReplace writes the file whether there was one or not.
	CreateOrReplace Create = iota
	// CreateOnly fails with [fs.ErrExist] if there is a file.
	CreateOnly
	// ReplaceOnly fails with [fs.ErrNotExist] if there is none.
	ReplaceOnly
)

// WriteOptions configure [Workspace.WriteFile].
type WriteOptions struct {
	// Create says whether a file must be there. Default CreateOrReplace.
	Create Create
	// At, unless zero, is where path must lead still, as [Workspace.WriteTarget] said (C11).
	// If it leads elsewhere the error is a *[MovedError].
	At Ref
	// IfUnchanged, unless zero, is the version that the file must have still. If it has another,
	// or is gone, the error is a *[ChangedError].
	IfUnchanged Version
	// MaxSize is the most bytes of data. More is a *[TooLargeError]. Default [DefaultMaxWrite].
	MaxSize int64
}

// WriteTarget is where [Workspace.WriteFile] would put a file: links are followed, the last one too,
// and only the last name may be missing. It writes nothing. A directory and a special file are
// refused as WriteFile refuses them.
func (w *Workspace) WriteTarget(path string) (Ref, error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return Ref{}, err
	}
	return w.toWrite(a, func(arrival, Ref) error { return nil })
}

// WriteFile makes data the content of the regular file at path, all of it or nothing: a new file
// is written beside the old one and takes its name, so that a reader sees the one or the
// other. On any error the old file is as it was. What is written is on the disk before it gets the name.
//
// A link is written through: what it leads to is replaced, never the link (C12). A link that leads to
// nothing makes the file that it names, if that lies in a root. The directory must exist. Other names of
// the old file (hard links) keep the old content. A new file gets the permissions that the process
// gives to files; a replaced one keeps its own, and its owner and group as far as the process may
// give them. What was marked as read-only is refused.
//
// It returns where the file is. Besides those of [Workspace], errors are *[TooLargeError],
// *[MovedError], *[ChangedError], and the context's. A version is compared just before the
// file takes its name: a change between the two, some microseconds, goes unnoticed. A process that is killed
// meanwhile may leave a file behind whose name begins with ".acp-agent-".
func (w *Workspace) WriteFile(ctx context.Context, path string, data []byte, o WriteOptions) (Ref, error) {
	if err := w.begin(); err != nil {
		return Ref{}, err
	}
	defer w.end()
	a, err := parse(path)
	if err != nil {
		return Ref{}, err
	}
	if err := o.bound(path, len(data)); err != nil {
		return Ref{}, err
	}
	return w.toWrite(a, func(end arrival, ref Ref) error {
		if err := o.permit(a, end, ref); err != nil {
			return err
		}
		r := replacement{asked: a, dir: end.dir, name: end.name, old: end.info, version: o.IfUnchanged}
		return r.put(ctx, data)
	})
}

// toWrite calls use with the place of the file to be written.
func (w *Workspace) toWrite(a asked, use func(arrival, Ref) error) (ref Ref, err error) {
	err = w.walk(a, orMissing, func(end arrival) error {
		if end.info != nil && !end.info.Mode().IsRegular() {
			return unfit(a.path, end.info.Mode())
		}
		ref = w.ref(end.root, end.at)
		return use(end, ref)
	})
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

func (o WriteOptions) bound(path string, size int) error {
	limit := o.MaxSize
	if limit == 0 {
		limit = DefaultMaxWrite
	}
	if int64(size) > limit {
		return &TooLargeError{Path: path, Size: int64(size), Limit: limit}
	}
	return nil
}

// permit says whether a file may be put where the path led.
func (o WriteOptions) permit(a asked, end arrival, ref Ref) error {
	var zero Ref
	switch {
	case o.At != zero && o.At != ref:
		return &MovedError{Path: a.path, Was: o.At, Now: ref}
	case end.info == nil && !o.IfUnchanged.IsZero():
		return &ChangedError{Path: a.path}
	case end.info == nil && o.Create == ReplaceOnly:
		return failed("write", a.path, fs.ErrNotExist)
	case end.info != nil && o.Create == CreateOnly:
		return failed("write", a.path, fs.ErrExist)
	case end.info != nil && readOnlyFile(end.info):
		return failed("write", a.path, fs.ErrPermission)
	default:
		return nil
	}
}

// readOnlyFile reports whether a file says that it is not to be written. Replacing it would not ask.
func readOnlyFile(info os.FileInfo) bool { return info.Mode().Perm()&0o200 == 0 }
