package sqlite

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// Repair replaces a damaged store by a new one, which fill fills with what it can read. It works on
// a copy, keeps the damaged file and returns its path, "" if the store is not damaged and nothing
// was changed. Processes that have the file open store nothing more.
func Repair(
	ctx context.Context, o Options, fill func(damaged, fresh *Store) error,
) (kept string, err error) {
	o = o.withDefaults()
	tidy(o.Dir, o.Logger)
	damaged, fresh := o, o
	damaged.Dir = filepath.Join(o.Dir, repairName)
	fresh.Dir = filepath.Join(damaged.Dir, "new")
	if err := os.RemoveAll(damaged.Dir); err != nil { // of a repair that was killed
		return "", err
	}
	defer os.RemoveAll(damaged.Dir)
	path := filepath.Join(o.Dir, fileName)
	for _, suffix := range []string{"", "-wal"} {
		err := copyFile(path+suffix, filepath.Join(damaged.Dir, fileName+suffix))
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", (&file{options: o}).Explain(err)
		}
	}
	intact, err := copyReadable(ctx, New(damaged), New(fresh), fill)
	if err != nil || intact {
		return "", err
	}
	kept = filepath.Join(o.Dir,
		damagedPrefix+o.Now().UTC().Format("20060102T150405.000")+".db")
	for _, suffix := range []string{"-wal", "-shm", ""} {
		err := os.Rename(path+suffix, kept+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, os.Rename(filepath.Join(fresh.Dir, fileName), path)
}

// copyFile copies a file to a directory that only the user can read.
func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// copyReadable fills a store from a damaged one, unless that is intact. It makes the indexes of the
// damaged one anew, as far as possible.
func copyReadable(
	ctx context.Context, damaged, fresh *Store, fill func(damaged, fresh *Store) error,
) (intact bool, err error) {
	defer damaged.Close() // its errors do not matter
	if intact, err = damaged.isIntact(ctx); err != nil || intact {
		return intact, err
	}
	_ = damaged.core.Use(ctx, func() error { return damaged.file.renewIndexes(ctx) })
	_, err = fresh.Owners(ctx) // creates it
	if err == nil {
		err = fill(damaged, fresh)
	}
	return false, errors.Join(err, fresh.Close())
}

// renewIndexes makes the indexes anew. It forgets the old ones, because deleting their pages may
// fail.
func (f *file) renewIndexes(ctx context.Context) error {
	const named = " FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
	var all string
	err := f.writer.QueryRowContext(ctx, "SELECT group_concat(sql, char(0))"+named).Scan(&all)
	for _, text := range append([]string{"PRAGMA writable_schema = ON", "DELETE" + named,
		"PRAGMA writable_schema = RESET"}, strings.Split(all, "\x00")...) {
		if err == nil {
			_, err = f.writer.ExecContext(ctx, text)
		}
	}
	return err
}

// isIntact reports whether SQLite finds no damage.
func (s *Store) isIntact(ctx context.Context) (intact bool, err error) {
	err = s.core.Use(ctx, func() error {
		var verdict string
		err := s.file.writer.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
		intact = verdict == "ok"
		return err
	})
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return false, nil
	}
	return intact, err
}
