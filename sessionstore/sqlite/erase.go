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

	"github.com/acp-agent/acp-agent/internal/pause"
)

// A delete removes the session's row, so that nothing returns the session any more, and drops its
// strands by recording them in the table dropped. Their segments are deleted afterwards, because
// they may be many.
//
// A deleted row leaves copies in the files. secure_delete overwrites the row itself and, unless it
// is set to FAST, the pages that it frees, which takes long if there are many. So deletes use FAST,
// and the freed pages are given back to the file system afterwards, a few at a time. Two kinds of
// copies then remain: old pages in the log, and cells that SQLite once moved to other b-tree pages
// without overwriting their old place. In the meantime another process may use a freed page. SQLite
// clears such a page first, with two exceptions: one of the pages that list the free pages, so
// those are overwritten at the end of each transaction (overwriteLists), and a page that the
// transaction itself has freed, so passages are deleted without FAST (dropPassage).
//
// A delete counts itself in the table meta. Erasing deletes the segments, gives the freed pages
// back, removes the copies, and records the last delete for which that is done. If a process is
// killed, the next one that opens or closes the store continues.

const (
	// eraseDelay is the time between a delete and the erasing of its data; deletes in that time are
	// erased together. eraseRetry is the time between two attempts if the first fails.
	eraseDelay = 5 * time.Second
	eraseRetry = time.Minute
	// closeTimeout limits how long erasing delays a program that exits.
	closeTimeout = 5 * time.Second
	// pieceTime limits how long erasing and pruning hold the write lock at a time, before the
	// commit, which takes two or three times as long. pieceSteps limits the steps of a piece, even
	// if the clock stands still.
	pieceTime  = 2 * time.Millisecond
	pieceSteps = 8
	// minPause is the shortest pause between two pieces, maxPause the longest while another process
	// has a lock.
	minPause = 2 * time.Millisecond
	maxPause = 50 * time.Millisecond
	// vacuumPages is the number of pages that are given back at once, and overwrittenPages the
	// number that are overwritten at once.
	vacuumPages      = 4
	overwrittenPages = 16
	// scanPages is the number of pages that are examined at once.
	scanPages = 256
	// logPages is the length of the log up to which emptying it is a short piece of work.
	logPages = 64
	// maxLogPages is the length at which erasing waits until the log can be overwritten from its
	// beginning. It is below the length at which other writers spend time on that.
	maxLogPages = 500
	// logPieces is the number of pieces after which the log is moved into the file.
	logPieces = 2
)

// eraseSoon wakes the goroutine that erases.
func (s *medium) eraseSoon() {
	select {
	case s.eraseDue <- struct{}{}:
	default:
	}
}

// eraseInBackground erases the data of deleted sessions until the store is closed. Close does the
// rest.
func (s *medium) eraseInBackground(db *database) {
	for {
		select {
		case <-s.eraseDue:
		case <-s.life.Done():
			return
		}
		if pause.For(s.life, s.options.eraseDelay) != nil {
			return
		}
		err := s.erase(s.life, db)
		if err != nil && !isLocked(err) && pause.For(s.life, eraseRetry) != nil {
			return
		}
		if err != nil {
			s.eraseSoon()
		}
	}
}

// erase erases the data that earlier deletes have left, if any. It ends with ctx. It logs errors,
// except those that are due to locks.
func (s *medium) erase(ctx context.Context, db *database) error {
	err := s.erasePending(ctx, db)
	if err != nil && !isLocked(err) && ctx.Err() == nil {
		s.options.Logger.Warn(
			"cannot erase the data of deleted sessions from the file; it is tried again", "error", err)
	}
	return err
}

func (s *medium) erasePending(ctx context.Context, db *database) (err error) {
	var (
		deletes, erased int64
		dropped         bool
	)
	row := db.reader.QueryRowContext(context.WithoutCancel(ctx),
		"SELECT deletes, erased, EXISTS (SELECT 1 FROM dropped) FROM meta")
	err = row.Scan(&deletes, &erased, &dropped)
	if err != nil || deletes == erased && !dropped {
		return err
	}
	if s.inMemory() {
		e := eraser{pool: db.writer, version: newest(s.steps)}
		if err := e.inPieces(ctx, dropPassage); err != nil {
			return err
		}
		return e.inPieces(ctx, dropSegment)
	}
	if unlock, err := lockFile(filepath.Join(s.options.Dir, lockFileName)); err == nil {
		tidy(s.options.Dir, s.options.Logger)
		unlock()
	}
	// A separate connection does not wait for locks, and nothing in this process waits for it.
	pool, err := openPool(dsn(db.path, "immediate", pragmas(db.journal, 0, "FAST")), 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	e := eraser{pool: pool, version: newest(s.steps)}
	if err := e.deleteDropped(ctx); err != nil || deletes == erased {
		return err
	}
	for _, step := range []func(context.Context) error{e.overwrite, e.emptyLog} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return e.inPieces(ctx, func(tx *transaction) (bool, error) {
		err := tx.exec("UPDATE meta SET erased = max(erased, ?)", deletes)
		return true, err
	})
}

// eraser erases with one connection.
type eraser struct {
	pool    *sql.DB
	version int // the schema version that this program knows
	pieces  int // that were done
}

// inPieces calls step until it is done, in transactions of up to pieceSteps that hold the write
// lock for about pieceTime. After each of them others may write. A transaction that fails because
// of a lock is repeated. Unless the database is in memory, the log stays short.
func (e *eraser) inPieces(
	ctx context.Context, step func(*transaction) (done bool, err error),
) error {
	for done, wait := false, minPause; !done; {
		start := time.Now()
		err := e.transact(ctx, func(tx *transaction) (err error) {
			for i := 0; !done && err == nil && i < pieceSteps && time.Since(start) < pieceTime; i++ {
				done, err = step(tx)
			}
			return err
		})
		switch {
		case err == nil:
			wait = max(minPause, time.Since(start))
			if e.pieces++; e.pieces%logPieces == 0 {
				err = e.checkpoint(ctx, "RESTART", maxLogPages)
			}
		case isLocked(err):
			done, err, wait = false, nil, min(2*wait, maxPause)
		}
		if err != nil {
			return err
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// transact runs do in a transaction that holds the write lock.
func (e *eraser) transact(ctx context.Context, do func(*transaction) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Interrupting a statement would cost the connection.
	return inTransaction(context.WithoutCancel(ctx), e.pool, nil, func(tx *transaction) error {
		err := permitted(tx, e.version)
		if err == nil {
			err = do(tx)
		}
		if err == nil {
			err = overwriteLists(tx)
		}
		return err
	})
}

// deleteDropped deletes the passages and segments of dropped strands. After every few segments it
// gives all free pages back, because that takes longer the more there are.
func (e *eraser) deleteDropped(ctx context.Context) error {
	for done := false; !done; {
		if err := e.inPieces(ctx, dropPassage); err != nil {
			return err
		}
		steps := 0
		err := e.inPieces(ctx, func(tx *transaction) (_ bool, err error) {
			done, err = dropSegment(tx)
			steps++
			return done || steps >= pieceSteps, err
		})
		if err == nil {
			err = e.vacuum(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unneeded matches the rows of a dropped strand that no fork inherits. A session that still has the
// strand needs all.
const unneeded = `seq > coalesce((SELECT max(last) FROM inherits WHERE inherits.strand = dropped.strand), 0)
	AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.strand = dropped.strand)`

// dropPassage deletes a passage of a dropped strand. Deleting its words may reuse the pages that it
// frees in the same transaction, and SQLite does not clear the end of these: so they are
// overwritten at once.
func dropPassage(tx *transaction) (done bool, err error) {
	if err := tx.exec("PRAGMA secure_delete = ON"); err != nil {
		return false, err
	}
	n, err := tx.change(`
		DELETE FROM passages WHERE key = (
			SELECT key FROM dropped JOIN passages USING (strand) WHERE ` + unneeded + ` LIMIT 1)`)
	return n == 0, err
}

// dropSegment deletes the last segment of a dropped strand, whose passages are gone.
func dropSegment(tx *transaction) (done bool, err error) {
	if err := tx.exec("PRAGMA secure_delete = FAST"); err != nil {
		return false, err
	}
	var strand int64
	err = tx.row("SELECT strand FROM dropped WHERE NOT EXISTS " +
		"(SELECT 1 FROM passages WHERE passages.strand = dropped.strand AND " + unneeded + ") LIMIT 1").
		Scan(&strand)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	n, err := tx.change(`
		DELETE FROM segments WHERE rowid = (
			SELECT segments.rowid FROM dropped JOIN segments USING (strand)
			WHERE strand = ? AND `+unneeded+` ORDER BY seq DESC LIMIT 1)`, strand)
	if n > 0 || err != nil {
		return false, err
	}
	err = tx.exec("DELETE FROM dropped WHERE strand = ?", strand)
	return false, err
}

// vacuum gives the free pages back to the file system. Other pages take their place, so that their
// content is gone.
func (e *eraser) vacuum(ctx context.Context) error {
	return e.inPieces(ctx, func(tx *transaction) (done bool, err error) {
		var before, after int
		err = tx.row("PRAGMA freelist_count").Scan(&before)
		if err != nil || before == 0 {
			return true, err
		}
		err = tx.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
		if err == nil {
			err = tx.row("PRAGMA freelist_count").Scan(&after)
		}
		return after == 0 || after == before, err
	})
}

// emptyLog moves the log into the file and empties it, as soon as nobody reads from it.
func (e *eraser) emptyLog(ctx context.Context) error { return e.checkpoint(ctx, "TRUNCATE", -1) }

// checkpoint moves the log into the file. If the log has more than longest pages, checkpoint then
// begins a new one in the given mode, as soon as nobody reads the old one. Most of the work does
// not hold the write lock. With another journal it does nothing. While another process moves the
// log, its length is not known.
func (e *eraser) checkpoint(ctx context.Context, mode string, longest int) error {
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		var busy, length, moved int
		move := func(mode string) error {
			row := e.pool.QueryRowContext(context.WithoutCancel(ctx),
				"PRAGMA wal_checkpoint("+mode+")")
			return row.Scan(&busy, &length, &moved)
		}
		err := move("PASSIVE")
		if err == nil && busy == 0 && length <= longest {
			return nil
		}
		if err == nil && busy == 0 && length-moved <= logPages {
			if err = move(mode); err == nil && busy == 0 {
				return nil
			}
		}
		if err != nil && !isLocked(err) {
			return err
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// overwrite overwrites what is left in the unallocated middle of b-tree pages. It goes from the
// last page to the first, because a page that another process moves at the same time moves towards
// the first. Reading a page takes no lock that others wait for.
func (e *eraser) overwrite(ctx context.Context) error {
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
		for some := range slices.Chunk(stale, overwrittenPages) {
			err = e.inPieces(ctx, func(tx *transaction) (bool, error) {
				return true, overwritePages(tx, some)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// stalePages returns which of the scanPages pages up to last have a middle that is not empty.
func (e *eraser) stalePages(ctx context.Context, last int64) (stale []int64, err error) {
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
		if slices.ContainsFunc(unallocated(number, page), isNotZero) {
			stale = append(stale, number)
		}
	}
	return stale, rows.Err()
}

// overwritePages overwrites the unallocated part of pages.
func overwritePages(tx *transaction, pages []int64) error {
	for _, number := range pages {
		err := overwritePage(tx, number,
			func(page []byte) []byte { return unallocated(number, page) })
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // the file became shorter
			return err
		}
	}
	return nil
}

// overwriteLists overwrites the unused part of the pages that list the free pages
// (sqlite.org/fileformat2.html, section 1.5).
func overwriteLists(tx *transaction) error {
	var next, free uint32
	err := overwritePage(tx, 1, func(page []byte) []byte {
		next, free = binary.BigEndian.Uint32(page[32:]), binary.BigEndian.Uint32(page[36:])
		return nil
	})
	for ; err == nil && next > 0 && free > 0; free-- { // a damaged list may have no end
		err = overwritePage(tx, int64(next), func(page []byte) []byte {
			next = binary.BigEndian.Uint32(page)
			listed := int64(binary.BigEndian.Uint32(page[4:]))
			return page[min(8+4*listed, int64(len(page))):]
		})
	}
	return err
}

// overwritePage overwrites the part of a page that unused returns.
func overwritePage(tx *transaction, number int64, unused func(page []byte) []byte) error {
	var page []byte
	row := tx.row("SELECT data FROM sqlite_dbpage WHERE pgno = ?", number)
	if err := row.Scan(&page); err != nil {
		return err
	}
	part := unused(page)
	if !slices.ContainsFunc(part, isNotZero) {
		return nil
	}
	clear(part)
	return tx.exec("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number)
}

func isNotZero(b byte) bool { return b != 0 }

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
