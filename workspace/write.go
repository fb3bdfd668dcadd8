package workspace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
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
	// Lock, unless nil, is the lock of the file that the caller holds. Otherwise WriteFile locks
	// it.
	Lock *FileLock
	// MayLose is all that the file need not keep. If something else would be lost, it is not
	// written, and the error is a *[LossError].
	MayLose Losses
}

// WriteTarget returns where [Workspace.WriteFile] would write: it follows links, the last one too,
// and only the last name may be missing. For a directory, a special file, or a file that may not be
// written it fails like WriteFile. It writes nothing.
func (w *Workspace) WriteTarget(path string) (Ref, error) {
	return w.toWrite(path, func(found arrival) error {
		info, err := found.describe()
		if err != nil {
			return err
		}
		return found.checkWritable(info)
	})
}

// WriteFile makes data the content of the regular file at path, and returns where that is. It
// writes a new file, flushes it to disk and gives it the name, so that a reader sees the old
// content or the new. On an error the old file is unchanged.
//
// It writes through a link: it replaces or creates the file that the link leads to, never the link.
// The directory must exist. Other names (hard links) of the old file keep the old content. A new
// file gets the process's default permissions. To replace a file, the process must have the right
// to write to it: that it may replace it is not enough. A file that is marked read-only is not
// replaced. A replaced file keeps its permissions, owner, group, access control list and extended
// attributes, except those that vouch for its content; see WriteOptions.MayLose.
//
// With IfUnchanged, no change is lost that another [Workspace] makes, also one of another process,
// if the file system has locks. On Linux, neither is that of another program, unless it writes to
// the old file later than a moment after that was replaced: the names of the two files are
// exchanged, and exchanged again if the old one turns out to be another version. A process that is
// killed in that moment may leave the old content in a file whose name begins with ".acp-agent-".
// If it is killed earlier, it leaves such a file only where files cannot be created without a name;
// a write of another Workspace into that directory removes it after a day.
//
// In addition to the errors of [Workspace] it returns *[TooLargeError] for more than 64 MiB,
// *[MovedError], *[ChangedError], *[LossError], and the context's.
func (w *Workspace) WriteFile(
	ctx context.Context, path string, data []byte, o WriteOptions,
) (Ref, error) {
	if err := checkSize(path, len(data)); err != nil {
		return Ref{}, err
	}
	return w.toWrite(path, func(found arrival) error { return w.write(ctx, found, data, o) })
}

// write is WriteFile for a place where the path led.
func (w *Workspace) write(ctx context.Context, found arrival, data []byte, o WriteOptions) error {
	if err := found.expect(o.At); err != nil {
		return err
	}
	if err := w.Check(Access{Kind: Change, Path: found.asked.path, At: found.ref}); err != nil {
		return err
	}
	lock := o.Lock
	if lock == nil {
		var err error
		if lock, _, err = w.lock(ctx, found); err != nil {
			return err
		}
		defer lock.Unlock()
	}
	if err := found.expect(lock.ref); err != nil {
		return err
	}
	old, err := lock.take(ctx, found)
	if err != nil {
		return err
	}
	if err := o.permit(found, old); err != nil {
		return err
	}
	w.sweep(ctx, found.dir, found.ref)
	r := replacement{arrival: found, old: old, version: o.IfUnchanged, lock: lock,
		mayLose: o.MayLose}
	err = r.replace(ctx, data)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*ChangedError)), errors.As(err, new(*LossError)):
		return err
	default:
		return failed("write", found.asked.path, err)
	}
}

// WriteLosses predicts what a file that [Workspace.WriteFile] replaces would not keep.
func (w *Workspace) WriteLosses(path string) (losses Losses, err error) {
	_, err = w.toWrite(path, func(found arrival) error {
		info, err := found.describe()
		if info == nil {
			losses = 0
			return err
		}
		lost, err := found.dir.WouldLose(info)
		if err != nil {
			return failed("write", path, err)
		}
		losses = Losses(lost)
		if dirfd.Links(info) > 1 {
			losses |= LosesLinks
		}
		return nil
	})
	return losses, err
}

// toWrite calls use with where the path of a file leads, and returns that.
func (w *Workspace) toWrite(path string, use func(arrival) error) (Ref, error) {
	return w.change(path, orMissing, use)
}

func checkSize(path string, size int) error {
	if size > maxWrite {
		return &TooLargeError{Path: path, Size: int64(size), Limit: maxWrite}
	}
	return nil
}

// permit returns an error if the options, or the rights of the process, forbid writing at the place
// where the path led and old is now, nil for nothing.
func (o WriteOptions) permit(found arrival, old os.FileInfo) error {
	switch {
	case old == nil && !o.IfUnchanged.isZero():
		return &ChangedError{Path: found.asked.path}
	case old == nil && o.Create == ReplaceOnly:
		return failed("write", found.asked.path, fs.ErrNotExist)
	case old != nil && o.Create == CreateOnly:
		return failed("write", found.asked.path, fs.ErrExist)
	case old != nil && !old.Mode().IsRegular():
		return dirfd.ErrChanged // it was one before it was locked
	default:
		return found.checkWritable(old)
	}
}

// checkWritable returns an error unless the process has the right to write to the old file where
// the path led, nil for none. Otherwise the system would let it be replaced, if only its directory
// is writable.
func (found arrival) checkWritable(old os.FileInfo) error {
	if old == nil {
		return nil
	}
	err := error(fs.ErrPermission)
	if old.Mode().Perm()&0o200 != 0 { // is not marked read-only
		err = found.dir.CheckWrite(found.name)
	}
	if err != nil {
		return failed("write", found.asked.path, recheck(found.dir, found.name, old, err))
	}
	return nil
}

// replacement writes a file where a path led.
type replacement struct {
	arrival
	old     os.FileInfo // the file to replace, nil for none
	version Version     // that it must have, or zero
	lock    *FileLock
	mayLose Losses
}

// replace fails with dirfd.ErrChanged if old no longer describes the file.
func (r replacement) replace(ctx context.Context, data []byte) error {
	if err := r.check(r.name); err != nil {
		return err
	}
	d, err := r.create()
	if err != nil {
		return err
	}
	left := d.name
	if err = r.fill(ctx, d, data); err == nil {
		left, err = r.publish(d)
	}
	if err == nil && d.held {
		r.lock.hand(d.file)
	} else {
		_ = d.file.Close()
	}
	if err == nil {
		_ = r.dir.Sync() // the file has its name: an error no longer matters
	}
	if left != "" {
		_ = r.dir.Remove(left)
	}
	return err
}

// draft is a file with the new content before it gets its name.
type draft struct {
	file *os.File
	name string // "" if it has none yet
	held bool   // locked with the system, so that nobody changes it before it is safe
}

// create creates an empty draft, if possible one that has no name yet.
func (r replacement) create() (draft, error) {
	mode := fs.FileMode(0o666) // less the process's umask
	if r.old != nil {
		mode = r.old.Mode().Perm() & 0o700 // until it gets the other permissions
	}
	name := ""
	f, err := r.dir.CreateUnnamed(mode)
	if err == nil && r.old == nil && !masked(f) {
		_ = f.Close()
		err = errors.ErrUnsupported
	}
	if errors.Is(err, errors.ErrUnsupported) {
		name = temporaryName()
		f, err = r.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	}
	if err != nil {
		return draft{}, err
	}
	return draft{file: f, name: name, held: r.lock.held && dirfd.TryLock(f) == nil}, nil
}

// masked reports whether a new file has fewer permissions than it was created with. If it has not,
// the system may have ignored the umask: before 6.0, some file systems of Linux did for a file that
// has no name.
func masked(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().Perm() != 0o666
}

// fill writes a draft.
func (r replacement) fill(ctx context.Context, d draft, data []byte) error {
	if _, err := d.file.Write(data); err != nil {
		return err
	}
	if r.old != nil {
		if err := r.inherit(d.file); err != nil {
			return err
		}
	}
	if err := d.file.Sync(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !d.held && d.name != "" {
		return d.file.Close() // not every system renames an open file
	}
	return nil
}

// inherit gives f what the old file has. It fails if that loses more than it may.
func (r replacement) inherit(f *os.File) error {
	if r.lock.file == nil {
		return fs.ErrPermission
	}
	lost, err := dirfd.Inherit(f, r.lock.file)
	if over := Losses(lost) &^ r.mayLose; over != 0 && err == nil {
		err = &LossError{Path: r.asked.path, Losses: over}
	}
	if !r.lock.held {
		r.lock.drop() // not every system replaces an open file
	}
	return err
}

// check fails unless the entry name is the old file, and has the version.
func (r replacement) check(name string) error { return r.checkIs(name, r.old, r.version) }

// checkIs fails unless the entry name in the directory where the path led is a file, nil for none,
// and has a version.
func (found arrival) checkIs(name string, file os.FileInfo, version Version) error {
	now, err := found.dir.Lstat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return err
	case missing != (file == nil), !missing && !os.SameFile(now, file):
		return dirfd.ErrChanged
	case version.isZero():
		return nil
	}
	f, err := found.dir.Open(name)
	if err != nil {
		return recheck(found.dir, name, file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, file) {
		err = dirfd.ErrChanged
	}
	if err != nil {
		return err
	}
	same, err := version.matches(f)
	if err == nil && !same {
		err = &ChangedError{Path: found.asked.path}
	}
	return err
}

// publish gives the draft the name. left is the name of what must not be left in the directory then,
// or after an error: the draft or the old file. It is "" for nothing.
func (r replacement) publish(d draft) (left string, err error) {
	if r.old == nil {
		return d.name, r.publishNew(d)
	}
	name, err := r.nameDraft(d)
	if err != nil {
		return d.name, err
	}
	if !r.version.isZero() {
		left, err := r.exchange(name)
		if !errors.Is(err, errors.ErrUnsupported) {
			return left, err
		}
	}
	if err := r.check(r.name); err != nil {
		return name, err
	}
	return name, r.dir.Rename(name, r.dir, r.name)
}

// nameDraft gives the draft the name that it has until it replaces the file, and returns that.
func (r replacement) nameDraft(d draft) (string, error) {
	name := temporaryName()
	if !r.version.isZero() {
		name += "-" // so that nobody takes it for a draft
	}
	switch {
	case d.name == "":
		return name, r.dir.NameFile(d.file, name)
	case r.version.isZero():
		return d.name, nil
	default:
		return name, r.dir.Rename(d.name, r.dir, name)
	}
}

// publishNew gives the draft a name that is free.
func (r replacement) publishNew(d draft) error {
	// Unlike a plain rename, these do not replace a file that was created in the meantime.
	var err error
	if d.name == "" {
		err = r.dir.NameFile(d.file, r.name)
	} else {
		err = r.dir.RenameNew(d.name, r.dir, r.name)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = r.dir.Link(d.name, r.name)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return dirfd.ErrChanged
	case d.name == "":
		return err
	}
	// This file system has no hard links either.
	if err := r.check(r.name); err != nil {
		return err
	}
	return r.dir.Rename(d.name, r.dir, r.name)
}

// exchange exchanges the draft, which has this name, with the file, and looks afterwards whether that
// was the version to replace: another program may have changed it a moment before. If it was not, it
// gets its name back. left is as for publish.
func (r replacement) exchange(name string) (left string, err error) {
	now, err := r.dir.Lstat(r.name)
	if err != nil || !now.ModTime().Equal(r.old.ModTime()) || now.Size() != r.old.Size() {
		err = r.check(r.name) // a change that is visible needs no exchange
	}
	if err != nil {
		return name, err
	}
	draft, err := r.dir.Lstat(name)
	if err == nil {
		err = r.dir.Exchange(r.name, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = dirfd.ErrChanged
	}
	if err != nil {
		return name, err
	}
	if err := r.check(name); err != nil {
		if lost := r.putBack(name, draft); lost != nil {
			return "", lost // it is not ours to remove
		}
		return name, err
	}
	return name, nil
}

// putBack gives what the draft was exchanged with, and which has this name now, its own name back.
// If that has changed yet again, the newest file gets it, and the one before keeps the name of the
// draft.
func (r replacement) putBack(name string, draft os.FileInfo) error {
	err := r.dir.Exchange(r.name, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = r.dir.RenameNew(name, r.dir, r.name)
	}
	if err == nil {
		now, lstatErr := r.dir.Lstat(name)
		// While the draft had the file's name, somebody may have written into it.
		if errors.Is(lstatErr, fs.ErrNotExist) || lstatErr == nil && os.SameFile(draft, now) &&
			now.Size() == draft.Size() && now.ModTime().Equal(draft.ModTime()) {
			return nil
		}
		err = r.dir.Exchange(r.name, name)
	}
	if err == nil {
		err = errors.New("another program replaced it twice in that moment")
	}
	// Nothing may take this for an error after which it removes a file or tries again.
	return fmt.Errorf("%v: what had been there is now in %s, in the same directory", err, name)
}

const temporaryPrefix = ".acp-agent-"

// Losses is a set of what a replaced file does not keep. LosesLinks is always permitted.
type Losses uint8

// What a replaced file may not keep.
const (
	// LosesOwner means that the file will belong to the user of this process.
	LosesOwner = Losses(dirfd.LosesOwner)
	// LosesGroup means that it will belong to another group, which gets no more permissions than
	// everybody else.
	LosesGroup = Losses(dirfd.LosesGroup)
	// LosesACL means that its access control list is dropped. Nobody gets more permissions.
	LosesACL = Losses(dirfd.LosesACL)
	// LosesAttributes means that some of its extended attributes are dropped.
	LosesAttributes = Losses(dirfd.LosesAttributes)
	// LosesLinks means that its other names (hard links) keep the old content.
	LosesLinks = LosesAttributes << 1
)

// String describes the losses as the rest of a sentence about the file, such as "will not keep its
// owner", or "".
func (l Losses) String() string {
	var lost, all []string
	for i, name := range []string{"owner", "group", "access control list", "extended attributes"} {
		if l&(1<<i) != 0 {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		all = append(all, "will not keep its "+strings.Join(lost, " and "))
	}
	if l&LosesLinks != 0 {
		all = append(all, "has other names (hard links) that keep the old content")
	}
	return strings.Join(all, " and ")
}

// temporaryName returns an unused name for a temporary file.
func temporaryName() string { return temporaryPrefix + rand.Text() }

// isTemporary reports whether a file has a name of temporaryName, or that with a "-" at its end.
func isTemporary(name string) bool {
	text, ok := strings.CutPrefix(strings.TrimSuffix(name, "-"), temporaryPrefix)
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

// matches reports whether the file has the version.
func (v Version) matches(f *os.File) (bool, error) {
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, v.size+1))
	return n == v.size && [sha256.Size]byte(hash.Sum(nil)) == v.sum, err
}

// draftAge is how old a draft is before it is taken for one that was left behind.
const draftAge = 24 * time.Hour

// sweep removes drafts that processes which were killed have left in the directory of ref. A
// Workspace does that once for each directory. What was to change places with a file stays, because
// another program may have changed it. So does everything where the system has no locks.
func (w *Workspace) sweep(ctx context.Context, dir *dirfd.Dir, ref Ref) {
	if _, swept := w.swept.LoadOrStore(filepath.Dir(ref.Real()), true); swept {
		return
	}
	var names []string
	_ = dir.List(ctx, func(name string, kind fs.FileMode) bool {
		if isTemporary(name) && name[len(name)-1] != '-' && kind.IsRegular() {
			names = append(names, name)
		}
		return true
	})
	for _, name := range names {
		f, err := dir.OpenRegular(name)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && time.Since(info.ModTime()) > draftAge && dirfd.TryLock(f) == nil {
			_ = dir.Remove(name)
		}
		_ = f.Close()
	}
}
