package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Report is what [Repair] did.
type Report struct {
	// Damaged is where the damaged file is kept. It is the user's to remove.
	Damaged string
	// Sessions is how many sessions were kept, Updates how many updates are in their histories.
	Sessions, Updates int
	// Incomplete are the kept sessions that lost a part of their history. Where it was, the history says so.
	Incomplete []sessionstore.ID
	// Lost are the sessions that could not be kept, as far as their ids can be read.
	Lost []sessionstore.ID
}

// HealthyError: there is nothing to repair.
type HealthyError struct {
	// Path is the store's file.
	Path string
}

func (e *HealthyError) Error() string {
	return fmt.Sprintf("session store %s: nothing is wrong with it; nothing was changed", e.Path)
}

// InUseError: another program has the store open, so it cannot be repaired now.
type InUseError struct {
	// Path is the store's file.
	Path string
	// PID is that program's process, 0 if that is not known.
	PID int
}

func (e *InUseError) Error() string {
	who := "another program"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("session store %s: %s has it open; close every editor that uses it, then try again", e.Path, who)
}

// Repair replaces a damaged store by what can be read of it (S4). It works on copies, needs as much space
// as they take, and moves the damaged file aside only when the new one is complete. Nobody may
// have the store open: this process for certain, others as far as the system tells. The error is
// a [*HealthyError], an [*InUseError], or a [*sessionstore.UnavailableError], also for a file that is no damaged
// store but another program's, or a newer program's.
func Repair(ctx context.Context, o Options) (Report, error) {
	s := New(o)
	defer s.end()
	path := filepath.Join(o.Dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Report{}, s.explain(err)
	}
	var unlock func()
	err := s.patiently(ctx, func() (err error) {
		unlock, err = lockFile(filepath.Join(o.Dir, lockFileName))
		return err
	})
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	if pid, used := usedBy(path); used {
		return Report{}, &InUseError{Path: path, PID: pid}
	}
	report, err := s.rebuild(ctx, path)
	if healthy := new(HealthyError); errors.As(err, &healthy) {
		return report, healthy
	}
	return report, s.explain(err)
}

// rebuild makes the new file in a directory of its own, and puts it in the place of the damaged one.
func (s *Store) rebuild(ctx context.Context, path string) (Report, error) {
	work, err := os.MkdirTemp(s.options.Dir, "sessions.repair-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(work)
	damaged, fresh := filepath.Join(work, "damaged.db"), filepath.Join(work, "new.db")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err := copyFile(path+suffix, damaged+suffix); err != nil {
			return Report{}, err
		}
	}
	report, err := s.copyReadable(ctx, damaged, fresh, path)
	if err != nil {
		return Report{}, err
	}
	report.Damaged = filepath.Join(s.options.Dir, "sessions.damaged-"+s.options.Now().UTC().Format("20060102T150405.000")+".db")
	if err := exchange(path, report.Damaged, fresh); err != nil {
		return Report{}, err
	}
	return report, nil
}

// exchange moves the store at path aside, and the file fresh to its place. If that fails it moves back what it moved: a
// store without its log has lost commits. Where files can have two names there is a store at path all the time: whoever opens
// one that is not there makes an empty one.
func exchange(path, aside, fresh string) (err error) {
	var moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, suffix := range slices.Backward(moved) {
			err = errors.Join(err, os.Rename(aside+suffix, path+suffix))
		}
	}()
	move := func(suffix string) error {
		err := os.Rename(path+suffix, aside+suffix)
		if err == nil {
			moved = append(moved, suffix)
		}
		return err
	}
	for _, suffix := range []string{"-shm", "-wal", "-journal"} {
		if err := move(suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if os.Link(path, aside) == nil {
		if err := os.Rename(fresh, path); err != nil {
			return errors.Join(err, os.Remove(aside))
		}
		return nil
	}
	if err := move(""); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// copyReadable makes the file fresh with what can be read of damaged.
func (s *Store) copyReadable(ctx context.Context, damaged, fresh, path string) (report Report, err error) {
	from, err := openSalvage(ctx, damaged, s.steps)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if err := createFile(fresh); err != nil {
		return Report{}, err
	}
	// The rollback journal leaves one file, which is moved as a whole.
	to, err := connect(fresh, JournalRollback)
	if err != nil {
		return Report{}, err
	}
	if err := to.prepare(ctx, JournalRollback, s.steps); err != nil {
		return Report{}, errors.Join(err, to.close())
	}
	report, err = from.into(ctx, to)
	if err = errors.Join(err, to.close()); err != nil {
		return Report{}, err
	}
	if from.intact {
		return Report{}, &HealthyError{Path: path}
	}
	return report, nil
}

// copyFile copies a file for the user alone, if it is there.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
