package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// A deleted row leaves copies in the files. secure_delete overwrites the row itself, and the pages
// that it frees. Left are the freed pages, the old pages in the log, and cells that SQLite once
// moved to other b-tree pages: it does not overwrite the place that they had before.
//
// A delete counts itself in the table meta. Erasing removes the copies afterwards, and records up
// to which delete they are gone. Whoever opens or closes the store continues what a killed process
// left.

const (
	// eraseDelay is the time between a delete and the erasing of its copies, which deletes that
	// come meanwhile share.
	eraseDelay = 5 * time.Second
	// closeTimeout limits how long erasing delays a program that exits.
	closeTimeout = 5 * time.Second
	// pieceTime limits how long erasing and pruning hold the write lock at a time.
	pieceTime = 5 * time.Millisecond
	// minPause is the shortest pause between two pieces.
	minPause = 2 * time.Millisecond
	// vacuumPages is the number of pages that are given back at once.
	vacuumPages = 8
	// scanPages is the number of pages that are examined at once.
	scanPages = 256
	// logPages is the length of the log up to which emptying it is a short piece of work.
	logPages = 64
)

// countDelete records in the transaction of a delete that its copies are to be erased.
func countDelete(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE meta SET deletes = deletes + 1")
	return err
}

// eraseSoon wakes the goroutine that erases.
func (s *Store) eraseSoon() {
	select {
	case s.eraseDue <- struct{}{}:
	default:
	}
}

// eraseInBackground erases what deletes leave, until the store is closed. Close does the rest.
func (s *Store) eraseInBackground(db *database) {
	for {
		select {
		case <-s.eraseDue:
		case <-s.life.Done():
			return
		}
		if pause(s.life, s.options.eraseDelay) != nil {
			return
		}
		if err := s.erase(s.life, db); err != nil {
			s.eraseSoon() // it was logged, unless the store was closed
		}
	}
}

// erase erases what the deletes so far left in the files, if anything. It ends with ctx.
func (s *Store) erase(ctx context.Context, db *database) error {
	err := s.erasePending(ctx, db)
	if err != nil && ctx.Err() == nil {
		s.options.Logger.Warn("cannot erase what deleted sessions left in the file; it is tried again",
			"error", err)
	}
	return err
}

func (s *Store) erasePending(ctx context.Context, db *database) (err error) {
	var deletes, erased int64
	row := db.reader.QueryRowContext(context.WithoutCancel(ctx), "SELECT deletes, erased FROM meta")
	if err := row.Scan(&deletes, &erased); err != nil || deletes == erased {
		return err
	}
	if unlock, err := lockFile(filepath.Join(s.options.Dir, lockFileName)); err == nil {
		tidy(s.options.Dir, s.options.Logger)
		unlock()
	}
	// A connection of its own does not wait for locks and keeps nobody in this process waiting.
	pool, err := openPool(dsn(db.path, "immediate", pragmas(db.journal, 0)), 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	e := eraser{pool: pool}
	for _, step := range []func(context.Context) error{e.vacuum, e.overwrite, e.emptyLog} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return e.inPieces(ctx, func(ctx context.Context, tx *sql.Tx) (bool, error) {
		_, err := tx.ExecContext(ctx, "UPDATE meta SET erased = max(erased, ?)", deletes)
		return true, err
	})
}

// pause waits. It returns an error if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// eraser erases with one connection.
type eraser struct{ pool *sql.DB }

// inPieces calls step until it is done, in transactions that hold the write lock for about
// pieceTime. After each of them others may write. A transaction that fails because of a lock is
// repeated.
func (e eraser) inPieces(
	ctx context.Context, step func(context.Context, *sql.Tx) (done bool, err error),
) error {
	for done := false; !done; {
		start := time.Now()
		err := e.transact(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			for !done && err == nil && time.Since(start) < pieceTime {
				done, err = step(ctx, tx)
			}
			return err
		})
		if err != nil && !isLocked(err) {
			return err
		}
		done = done && err == nil
		if err := pause(ctx, max(minPause, time.Since(start))); err != nil {
			return err
		}
	}
	return nil
}

// transact runs do in a transaction that holds the write lock.
func (e eraser) transact(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx) // interrupting a statement would cost the connection
	tx, err := e.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

// vacuum gives the free pages back to the file system, unless the file was made so that it cannot.
func (e eraser) vacuum(ctx context.Context) error {
	before := -1
	return e.inPieces(ctx, func(ctx context.Context, tx *sql.Tx) (done bool, err error) {
		var free int
		err = tx.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free)
		if err != nil || free == 0 || free == before {
			return true, err
		}
		before = free
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
		return false, err
	})
}

// emptyLog moves the log into the file and empties it, as soon as nobody reads from it. Most of the
// work does not hold the write lock.
func (e eraser) emptyLog(ctx context.Context) error {
	for {
		var busy, length, moved int
		checkpoint := func(mode string) error {
			row := e.pool.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint("+mode+")")
			return row.Scan(&busy, &length, &moved)
		}
		err := checkpoint("PASSIVE")
		if err == nil && length-moved <= logPages {
			err = checkpoint("TRUNCATE")
			if err == nil && busy == 0 {
				return nil
			}
		}
		if err != nil && !isLocked(err) {
			return err
		}
		if err := pause(ctx, minPause); err != nil {
			return err
		}
	}
}

// overwrite overwrites what is left in the unallocated middle of b-tree pages. It goes from the last
// page to the first, because a page that another process moves meanwhile moves towards the first.
// Reading a page takes no lock that others wait for.
func (e eraser) overwrite(ctx context.Context) error {
	var last int64
	row := e.pool.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA page_count")
	if err := row.Scan(&last); err != nil {
		return err
	}
	for ; last > 0; last -= scanPages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stale, err := e.stalePages(context.WithoutCancel(ctx), last)
		if err != nil {
			return err
		}
		if len(stale) == 0 {
			continue
		}
		err = e.inPieces(ctx, func(ctx context.Context, tx *sql.Tx) (bool, error) {
			return true, overwritePages(ctx, tx, stale)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stalePages returns which of the scanPages pages up to last have a middle that is not empty.
func (e eraser) stalePages(ctx context.Context, last int64) (stale []int64, err error) {
	rows, err := e.pool.QueryContext(ctx, `
		WITH RECURSIVE numbers (n) AS (VALUES (?1) UNION ALL SELECT n - 1 FROM numbers WHERE n > ?2)
		SELECT n, data FROM numbers JOIN sqlite_dbpage ON pgno = n`, last, max(1, last-scanPages+1))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			number int64
			page   sql.RawBytes
		)
		if err := rows.Scan(&number, &page); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(unallocated(number, page), func(b byte) bool { return b != 0 }) {
			stale = append(stale, number)
		}
	}
	return stale, rows.Err()
}

// overwritePages overwrites the unallocated part of pages.
func overwritePages(ctx context.Context, tx *sql.Tx, pages []int64) error {
	for _, number := range pages {
		var page []byte
		row := tx.QueryRowContext(ctx, "SELECT data FROM sqlite_dbpage WHERE pgno = ?", number)
		if err := row.Scan(&page); errors.Is(err, sql.ErrNoRows) {
			continue // the file became shorter
		} else if err != nil {
			return err
		}
		clear(unallocated(number, page))
		_, err := tx.ExecContext(ctx, "UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number)
		if err != nil {
			return err
		}
	}
	return nil
}

// unallocated returns the part of a b-tree page between its cell pointers and its cells
// (sqlite.org/fileformat2.html, section 1.6), or nothing if the page is not a valid b-tree page.
// Other pages begin with the number of a page, so their first byte is 0 or 1 in a file of less than
// 128 GiB, except those that map pointers.
func unallocated(number int64, page []byte) []byte {
	header := 0
	if number == 1 {
		header = 100 // of the file
	}
	if len(page) < header+12 || number >= 1<<25 || mapsPointers(number, int64(len(page))) {
		return nil
	}
	pointers := header + 8
	switch page[header] {
	case 0x02, 0x05: // interior pages
		pointers += 4
	case 0x0a, 0x0d: // leaves
	default:
		return nil
	}
	cells := int(binary.BigEndian.Uint16(page[header+3:]))
	content := int(binary.BigEndian.Uint16(page[header+5:]))
	if content == 0 {
		content = 1 << 16
	}
	start := pointers + 2*cells
	if start > content || content > len(page) {
		return nil
	}
	return page[start:content]
}

// mapsPointers reports whether a page of a file that can be vacuumed maps pointers (section 1.8).
// Each of these pages has an entry of 5 bytes for each of the pages after it.
func mapsPointers(number, size int64) bool {
	const lockPage = 1 << 30 // the offset of a page that is not used
	every := size/5 + 1
	first := (number-2)/every*every + 2
	if first == lockPage/size+1 {
		first++
	}
	return number == first
}
