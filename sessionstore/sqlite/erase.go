package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// vacuumPages is the number of pages that are given back at once. In between other writers get
	// their turn.
	vacuumPages = 1000
	// eraseTimeout limits how long a delete waits for readers in other processes.
	eraseTimeout = 2 * time.Second
)

// erase removes what deleted rows left in the files: it gives the freed pages back to the file
// system, overwrites stale copies, empties the log, and removes the copies that a killed repair
// left. What it cannot do in time is left to the next delete, or the last process that closes the
// store.
func (s *Store) erase(ctx context.Context) error {
	if unlock, err := lockFile(filepath.Join(s.options.Dir, lockFileName)); err == nil {
		tidy(s.options.Dir, s.options.Logger)
		unlock()
	}
	return s.use(ctx, func(db *database) error {
		deadline := time.Now().Add(min(eraseTimeout, s.options.lockTimeout))
		for _, step := range []eraseStep{vacuum, overwriteStale, emptyLog} {
			for done := false; !done; {
				if time.Now().After(deadline) || ctx.Err() != nil || s.life.Err() != nil {
					return nil
				}
				var err error
				if done, err = db.erase(ctx, step); err != nil && !isLocked(err) {
					return s.explain(err)
				}
			}
		}
		return nil
	})
}

// eraseStep does a part of the work of erase, and reports whether it is complete.
type eraseStep func(context.Context, *sql.Conn) (done bool, err error)

// erase runs a step on the connection that writes, and returns the connection, so that a step that
// waits does not keep others from writing.
func (d *database) erase(ctx context.Context, step eraseStep) (bool, error) {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	return step(context.WithoutCancel(ctx), conn)
}

// vacuum gives some free pages back to the file system.
func vacuum(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	var free int
	if err := conn.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return false, err
	}
	if free == 0 {
		return true, nil
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
	return free <= vacuumPages, err
}

// emptyLog moves the log into the file and empties it. It waits for readers no longer than the busy
// timeout of the connection.
func emptyLog(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	var busy, log, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	return busy == 0, err
}

// overwriteStale overwrites the copies that SQLite leaves in the unallocated middle of a page when
// it moves cells between b-tree pages. secure_delete does not overwrite them, so they would outlast
// the deleted cell. It uses one transaction, which keeps the types of pages from changing, and
// takes about a second per gigabyte.
func overwriteStale(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	if err := overwritePages(ctx, tx); err != nil {
		return false, errors.Join(err, rollback(tx))
	}
	err = tx.Commit()
	return err == nil, err
}

func overwritePages(ctx context.Context, tx *sql.Tx) error {
	pages, err := stalePages(ctx, tx)
	if err != nil {
		return err
	}
	for _, number := range pages {
		var page []byte
		if err := tx.QueryRowContext(ctx, "SELECT data FROM sqlite_dbpage WHERE pgno = ?", number).Scan(&page); err != nil {
			return err
		}
		clear(unallocated(number, page))
		if _, err := tx.ExecContext(ctx, "UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number); err != nil {
			return err
		}
	}
	return nil
}

// stalePages returns the numbers of the b-tree pages whose unallocated part is not empty.
func stalePages(ctx context.Context, tx *sql.Tx) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT pgno, data FROM dbstat JOIN sqlite_dbpage ON pgno = pageno
		WHERE pagetype IN ('leaf', 'internal')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var stale []int64
	for rows.Next() {
		var (
			number int64
			page   sql.RawBytes
		)
		if err := rows.Scan(&number, &page); err != nil {
			return nil, err
		}
		if len(bytes.Trim(unallocated(number, page), "\x00")) > 0 {
			stale = append(stale, number)
		}
	}
	return stale, rows.Err()
}

// unallocated returns the part of a b-tree page between its cell pointers and its cells
// (sqlite.org/fileformat2.html, section 1.6), or nothing if the page is invalid.
func unallocated(number int64, page []byte) []byte {
	header := 0
	if number == 1 {
		header = 100 // of the file
	}
	if len(page) < header+12 {
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
