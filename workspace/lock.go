package workspace

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/acp-agent/acp-agent/internal/files/dirfd"
	"github.com/acp-agent/acp-agent/internal/text/pause"
)

// Whoever changes, moves or removes a file holds its lock: first a place in the queue of its name,
// for others that use the same Workspace, and then a lock of the system on the file itself, for
// other workspaces and processes. That is dropped with the process and leaves no file behind. A
// name may get another file while its lock is awaited, so the name is looked at again afterwards.

// lockPatience is how long to wait for a lock of the system: a program may hold one for good.
const lockPatience = 10 * time.Second

// maxLockPause is how long to wait before asking the system for a lock again.
const maxLockPause = 5 * time.Millisecond

// FileLock keeps a file from being changed through any [Workspace] until Unlock.
type FileLock struct {
	locks *fileLocks
	ref   Ref
	queue *lockQueue
	file  *os.File // what has the name, nil if nothing or it cannot be opened
	held  bool     // file is locked with the system
}

// fileLocks are the locks of a Workspace.
type fileLocks struct {
	mu     sync.Mutex
	queues map[string]*lockQueue
}

// lockQueue is the queue of a name. One who is in it may send to turn.
type lockQueue struct {
	name  string
	turn  chan struct{}
	users int
}

// LockFile waits until nobody else changes the file that [Workspace.WriteFile] would write at path.
// The file need not exist. A program that does not know these locks is not kept from changing it.
//
// The error is the context's, one of [Workspace.WriteTarget], or that another program has locked
// the file and has not released it in ten seconds.
func (w *Workspace) LockFile(ctx context.Context, path string) (lock *FileLock, err error) {
	_, err = w.toWrite(path, func(found arrival) error {
		lock, _, err = w.lock(ctx, found)
		return err
	})
	return lock, err
}

// lock locks what is where a path led, and describes it, or nil.
func (w *Workspace) lock(ctx context.Context, found arrival) (*FileLock, os.FileInfo, error) {
	queue, err := w.locks.enter(ctx, found.ref)
	if err != nil {
		return nil, nil, err
	}
	l := &FileLock{locks: &w.locks, ref: found.ref, queue: queue}
	info, err := l.take(ctx, found)
	if err != nil {
		l.Unlock()
		return nil, nil, err
	}
	return l, info, nil
}

// enter waits for the turn in the queue of a place. Names that differ only in case may mean one
// file, and share a queue.
func (s *fileLocks) enter(ctx context.Context, ref Ref) (*lockQueue, error) {
	name := strings.ToLower(ref.Path())
	s.mu.Lock()
	q := s.queues[name]
	if q == nil {
		q = &lockQueue{name: name, turn: make(chan struct{}, 1)}
		if s.queues == nil {
			s.queues = make(map[string]*lockQueue)
		}
		s.queues[name] = q
	}
	q.users++
	s.mu.Unlock()
	select {
	case q.turn <- struct{}{}:
		return q, nil
	case <-ctx.Done():
		s.leave(q)
		return nil, context.Cause(ctx)
	}
}

// leave leaves a queue.
func (s *fileLocks) leave(q *lockQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(s.queues, q.name)
	}
}

// Unlock releases the lock. It must be called once.
func (l *FileLock) Unlock() {
	l.drop()
	<-l.queue.turn
	l.locks.leave(l.queue)
}

// drop releases the system's lock.
func (l *FileLock) drop() {
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.held = nil, false
}

// hand makes f, which has taken the name and is locked, the file of the lock.
func (l *FileLock) hand(f *os.File) {
	l.drop()
	l.file, l.held = f, true
}

// take locks with the system what the entry where the path led is now, and describes it. If there
// is no such entry, or no regular file, there is nothing to lock.
func (l *FileLock) take(ctx context.Context, found arrival) (os.FileInfo, error) {
	until := time.Now().Add(lockPatience)
	for delay := maxLockPause / 64; ; delay = min(2*delay, maxLockPause) {
		var info os.FileInfo
		err := retry(found.asked.path, func() (err error) {
			info, err = l.tryToTake(found.dir, found.name)
			return err
		})
		switch {
		case err == nil:
			return info, nil
		case !errors.Is(err, dirfd.ErrLocked) || time.Now().After(until):
			return nil, failed("lock", found.asked.path, err)
		}
		if err := pause.For(ctx, delay/2+rand.N(delay)); err != nil {
			return nil, err
		}
	}
}

// tryToTake is take that does not wait: it may fail with dirfd.ErrLocked. After it has locked a file
// it fails with dirfd.ErrChanged, and looks at the name again when it is called again.
func (l *FileLock) tryToTake(dir *dirfd.Dir, name string) (os.FileInfo, error) {
	now, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		l.drop()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if l.file != nil {
		if has, err := l.file.Stat(); err == nil && os.SameFile(has, now) {
			return now, nil
		}
		l.drop()
	}
	if !now.Mode().IsRegular() {
		return now, nil
	}
	file, err := dir.OpenAny(name)
	if err != nil {
		if err = recheck(dir, name, now, err); errors.Is(err, fs.ErrPermission) {
			return now, nil // it can be removed all the same
		}
		return nil, err
	}
	err = dirfd.TryLock(file)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		_ = file.Close()
		return nil, err
	}
	l.file, l.held = file, err == nil
	return nil, dirfd.ErrChanged // perhaps: another file may have taken the name meanwhile
}
