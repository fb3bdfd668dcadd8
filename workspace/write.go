package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/acp-agent/acp-agent/internal/dirfd"
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
	if err := o.checkSize(path, len(data)); err != nil {
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

func (o WriteOptions) checkSize(path string, size int) error {
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

// writtenAtOnce is how many bytes are written between two looks at the context.
const writtenAtOnce = 1 << 20

// replacement is a file that is to take the place of name in dir. All that it does there it does by
// the directory's handle and a name in it, so that nothing that happens to the path leads it elsewhere.
type replacement struct {
	asked   asked
	dir     *dirfd.Dir
	name    string
	old     os.FileInfo // of the file that bears the name, nil if there is none
	version Version     // that it must have, or zero
}

// put fails with dirfd.ErrChanged if the name is no longer what was seen.
func (r replacement) put(ctx context.Context, data []byte) error {
	err := r.replace(ctx, data)
	changed := (*ChangedError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &changed):
		return changed
	default:
		return failed("write", r.asked.path, err)
	}
}

func (r replacement) replace(ctx context.Context, data []byte) error {
	temp := hiddenName()
	if err := r.fill(ctx, temp, data); err != nil {
		return err
	}
	err := r.check()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = r.take(temp)
	}
	_ = r.dir.Remove(temp) // where it was renamed there is none
	if err == nil {
		_ = r.dir.Sync() // the file has its name: an error no longer matters
	}
	return err
}

// fill makes the file temp, which must not exist, and leaves nothing if that fails.
func (r replacement) fill(ctx context.Context, temp string, data []byte) error {
	mode := fs.FileMode(0o666) // what the process's umask leaves of it
	if r.old != nil {
		mode = 0o600 // until it gets the old file's permissions
	}
	f, err := r.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = writeAll(ctx, f, data)
	if err == nil && r.old != nil {
		err = inherit(f, r.old)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = r.dir.Remove(temp)
	}
	return err
}

func writeAll(ctx context.Context, f *os.File, data []byte) error {
	for len(data) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.Write(data[:min(len(data), writtenAtOnce)])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// inherit gives f what the old file has. Where it cannot have the group, another group gets no more than
// everybody.
func inherit(f *os.File, old os.FileInfo) error {
	perm := old.Mode().Perm()
	if !dirfd.CopyOwner(f, old) {
		perm = perm&^0o070 | perm&0o007<<3
	}
	return f.Chmod(perm)
}

// check fails unless the name is as it was seen and its file has the version.
func (r replacement) check() error {
	now, err := r.dir.Lstat(r.name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case missing != (r.old == nil), !missing && !os.SameFile(now, r.old):
		return dirfd.ErrChanged
	case r.version.IsZero():
		return nil
	}
	f, info, err := openSeenFile(r.dir, r.name, r.old)
	if err != nil {
		return err
	}
	defer f.Close()
	same, err := r.version.matches(f, info.Size())
	if err == nil && !same {
		err = &ChangedError{Path: r.asked.path}
	}
	return err
}

// take gives temp the name.
func (r replacement) take(temp string) error {
	if r.old == nil {
		// Unlike a rename, neither of these takes the name from a file that has come meanwhile.
		err := r.dir.RenameNew(temp, r.dir, r.name)
		if errors.Is(err, errors.ErrUnsupported) {
			err = r.dir.Link(temp, r.name)
		}
		if errors.Is(err, fs.ErrExist) {
			return dirfd.ErrChanged
		}
		if err == nil {
			return nil
		}
		// Not every file system has hard links.
	}
	return r.dir.Rename(temp, r.dir, r.name)
}

// hiddenName returns a new name for a temporary file, which no existing entry has.
func hiddenName() string { return ".acp-agent-" + rand.Text() }

// Version tells the contents of files apart. It is a hash of the content: times are too coarse to notice
// two changes in a row, and a file that was touched has not changed. Of a file that is too large to
// be read to its end it is what the system says about it: which file it is, its size and
// its times. Versions compare with ==. The zero Version is none.
type Version struct {
	size int64
	sum  [sha256.Size]byte
	told bool // whether sum is of what the system says
}

// VersionOf is the version of a file with this content.
func VersionOf(content []byte) Version {
	return Version{size: int64(len(content)), sum: sha256.Sum256(content)}
}

// IsZero reports whether v is no version. That of an empty file is not zero.
func (v Version) IsZero() bool { return v == Version{} }

// versionOfFile is the version of a file by what the system says about it.
func versionOfFile(f *os.File) (Version, error) {
	info, err := f.Stat()
	if err != nil {
		return Version{}, err
	}
	about := binary.LittleEndian.AppendUint64(nil, uint64(info.ModTime().UnixNano()))
	for _, n := range dirfd.Identity(f, info) {
		about = binary.LittleEndian.AppendUint64(about, n)
	}
	return Version{info.Size(), sha256.Sum256(about), true}, nil
}

// matches reports whether the file, which has this size, has the version.
func (v Version) matches(f *os.File, size int64) (bool, error) {
	if size != v.size {
		return false, nil
	}
	if v.told {
		now, err := versionOfFile(f)
		return now == v, err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, v.size+1))
	return n == v.size && [sha256.Size]byte(hash.Sum(nil)) == v.sum, err
}
