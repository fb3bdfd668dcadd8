package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/acp-agent/acp-agent/internal/dirfd"
)

// maxWrite is the maximum size, in bytes, of a file that is written.
const maxWrite = 64 << 20

// Create says whether [Workspace.WriteFile] creates a file or replaces one.
type Create int

const (
	CreateOrReplace Create = iota // write the file whether it exists or not
	CreateOnly                    // fail with [fs.ErrExist] if the file exists
	ReplaceOnly                   // fail with [fs.ErrNotExist] if it does not
)

// WriteOptions configure [Workspace.WriteFile].
type WriteOptions struct {
	// Create says whether the file may or must exist. Zero means CreateOrReplace.
	Create Create
	// At, unless zero, is where path must still lead, as [Workspace.WriteTarget] returned it. If it
	// now points somewhere else, the error is a *[MovedError].
	At Ref
	// IfUnchanged, unless zero, is the version that the file must still have. If it has another, or
	// is gone, the error is a *[ChangedError].
	IfUnchanged Version
}

// WriteTarget returns where [Workspace.WriteFile] would write: it follows links, the last one too,
// and only the last name may be missing. For a directory or special file it fails like WriteFile.
// It writes nothing.
func (w *Workspace) WriteTarget(path string) (Ref, error) {
	a, err := w.beginAt(path)
	if err != nil {
		return Ref{}, err
	}
	defer w.end()
	return w.toWrite(a, func(arrival, Ref) error { return nil })
}

// WriteFile makes data the content of the regular file at path, and returns where that is. It
// writes a temporary file, flushes it to disk and renames it, so that a reader sees the old content
// or the new. On an error the old file is unchanged.
//
// It writes through a link: it replaces or creates the file that the link leads to, never the link.
// The directory must exist. Other names (hard links) of the old file keep the old content. A new
// file gets the process's default permissions. A replaced file keeps its permissions, and its owner
// and group if the process may set them. A file that is marked read-only is not replaced.
//
// In addition to the errors of [Workspace] it returns *[TooLargeError] for more than 64 MiB,
// *[MovedError], *[ChangedError], and the context's. The version is compared just before the
// rename: a change in the microseconds between the two is lost. A process that is killed may leave
// a temporary file behind, whose name begins with ".acp-agent-".
func (w *Workspace) WriteFile(ctx context.Context, path string, data []byte,
	o WriteOptions) (Ref, error) {
	a, err := w.beginAt(path)
	if err != nil {
		return Ref{}, err
	}
	defer w.end()
	if err := checkSize(path, len(data)); err != nil {
		return Ref{}, err
	}
	return w.toWrite(a, func(end arrival, ref Ref) error {
		if err := o.permit(a, end, ref); err != nil {
			return err
		}
		r := replacement{asked: a, dir: end.dir, name: end.name, old: end.info,
			version: o.IfUnchanged}
		return r.put(ctx, data)
	})
}

// toWrite calls use with where path leads.
func (w *Workspace) toWrite(a parsedPath, use func(arrival, Ref) error) (ref Ref, err error) {
	err = w.resolve(a, orMissing, func(end arrival) error {
		if end.info != nil && !end.info.Mode().IsRegular() {
			return notRegular(a.path, end.info.Mode())
		}
		ref = w.ref(end.root, end.at)
		return use(end, ref)
	})
	if err != nil {
		return Ref{}, err
	}
	return ref, nil
}

func checkSize(path string, size int) error {
	if size > maxWrite {
		return &TooLargeError{Path: path, Size: int64(size), Limit: maxWrite}
	}
	return nil
}

// permit returns an error if the options forbid writing at the place where the path led.
func (o WriteOptions) permit(a parsedPath, end arrival, ref Ref) error {
	var zero Ref
	switch {
	case o.At != zero && o.At != ref:
		return &MovedError{Path: a.path, Was: o.At, Now: ref}
	case end.info == nil && !o.IfUnchanged.isZero():
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

// readOnlyFile reports whether a file is marked read-only. The system would let it be replaced.
func readOnlyFile(info os.FileInfo) bool { return info.Mode().Perm()&0o200 == 0 }

// writeChunk is how many bytes are written between two checks of the context.
const writeChunk = 1 << 20

// replacement writes the file name in dir. It works through the directory's handle, so that later
// changes to the path cannot redirect it.
type replacement struct {
	asked   parsedPath
	dir     *dirfd.Dir
	name    string
	old     os.FileInfo // of the file to replace, or nil
	version Version     // that it must have, or zero
}

// put fails with dirfd.ErrChanged if old no longer describes the file.
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
	temp := temporaryName()
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
	_ = r.dir.Remove(temp) // gone already if it was renamed
	if err == nil {
		_ = r.dir.Sync() // the file has its name: an error no longer matters
	}
	return err
}

// fill creates the file temp. If it fails, it leaves no file.
func (r replacement) fill(ctx context.Context, temp string, data []byte) error {
	mode := fs.FileMode(0o666) // less the process's umask
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
		n, err := f.Write(data[:min(len(data), writeChunk)])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// inherit gives f the owner, group and permissions of the old file. If the group cannot be set, the
// file's own group gets no more permissions than everybody.
func inherit(f *os.File, old os.FileInfo) error {
	perm := old.Mode().Perm()
	if !dirfd.CopyOwner(f, old) {
		perm = perm&^0o070 | perm&0o007<<3
	}
	return f.Chmod(perm)
}

// check fails unless old still describes the file, and the file has the version.
func (r replacement) check() error {
	now, err := r.dir.Lstat(r.name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case missing != (r.old == nil), !missing && !os.SameFile(now, r.old):
		return dirfd.ErrChanged
	case r.version.isZero():
		return nil
	}
	f, info, err := openSameFile(r.dir, r.name, r.old)
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

// take renames temp to the name.
func (r replacement) take(temp string) error {
	if r.old == nil {
		// Unlike a plain rename, these do not replace a file that was created in the meantime.
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
		// This file system has no hard links either.
	}
	return r.dir.Rename(temp, r.dir, r.name)
}

const temporaryPrefix = ".acp-agent-"

// temporaryName returns an unused name for a temporary file.
func temporaryName() string { return temporaryPrefix + rand.Text() }

// isTemporary reports whether a file has a name of temporaryName.
func isTemporary(name string) bool {
	text, ok := strings.CutPrefix(name, temporaryPrefix)
	return ok && len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// Version identifies the content of a file by its hash: modification times are too coarse to notice
// two changes in a row. Versions compare with ==. The zero Version stands for no content.
type Version struct {
	size int64
	sum  [sha256.Size]byte
}

// VersionOf returns the version of a file with this content.
func VersionOf(content []byte) Version {
	return Version{size: int64(len(content)), sum: sha256.Sum256(content)}
}

// isZero reports whether v is the zero Version. The Version of an empty file is not zero.
func (v Version) isZero() bool { return v == Version{} }

// matches reports whether the file, which has size bytes, has the version.
func (v Version) matches(f *os.File, size int64) (bool, error) {
	if size != v.size {
		return false, nil
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, v.size+1))
	return n == v.size && [sha256.Size]byte(hash.Sum(nil)) == v.sum, err
}
