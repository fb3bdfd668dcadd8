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
	makeAllPrivate(o.Dir, o.Logger)
	path := filepath.Join(o.Dir, fileName)
	work := filepath.Join(o.Dir, repairName)
	damaged, fresh := New(Options{Dir: work}), New(Options{Dir: filepath.Join(work, "new")})
	// A repair that was killed has left its directory.
	err = errors.Join(os.RemoveAll(work), os.MkdirAll(fresh.Dir(), 0o700))
	defer os.RemoveAll(work)
	for _, suffix := range []string{"-wal", ""} {
		if err == nil {
			err = copyFile(path+suffix, filepath.Join(work, fileName+suffix))
		}
	}
	if err != nil {
		return "", damaged.file.Explain(err)
	}
	defer damaged.Close() // its errors do not matter
	if intact, err := damaged.isIntact(ctx); err != nil || intact {
		return "", err
	}
	if _, err = fresh.Owners(ctx); err == nil { // it exists now
		err = fill(damaged, fresh)
	}
	if err = errors.Join(err, fresh.Close()); err != nil {
		return "", err
	}
	kept = filepath.Join(o.Dir, damagedPrefix+o.Now().UTC().Format("20060102T150405.000")+".db")
	for _, suffix := range []string{"-wal", "-shm", ""} {
		err := os.Rename(path+suffix, kept+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, os.Rename(filepath.Join(fresh.Dir(), fileName), path)
}

// copyFile copies a file. A log need not exist.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(from, "-wal") {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// isIntact reports whether SQLite finds no damage. If there is some, it makes the indexes again. It
// forgets the old ones, because deleting their pages may fail.
func (s *Store) isIntact(ctx context.Context) (bool, error) {
	const named = " FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
	var verdict, indexes string
	err := s.core.Use(ctx, func() error {
		db := s.file.writer
		err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
		if verdict != "ok" && db.QueryRowContext(ctx,
			"SELECT group_concat(sql, ';')"+named).Scan(&indexes) == nil {
			_, _ = db.ExecContext(ctx, "PRAGMA writable_schema = ON; DELETE"+named+
				"; PRAGMA writable_schema = RESET; "+indexes)
		}
		return err
	})
	if code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB {
		err = nil
	}
	return verdict == "ok", err
}
