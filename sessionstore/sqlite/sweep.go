package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
)

// When SQLite moves cells from one b-tree page to another it leaves copies of them in the unallocated
// middle of the page, which secure_delete does not overwrite; once the cell is
// deleted, its copy is still in the file. sweep overwrites all of them. It runs in one transaction,
// which keeps page types from changing under it, and takes about a second for a gigabyte.
func sweep(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	if err := overwrite(ctx, tx); err != nil {
		return false, errors.Join(err, rollback(tx))
	}
	err = tx.Commit()
	return err == nil, err
}

func overwrite(ctx context.Context, tx *sql.Tx) error {
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

// stalePages are the numbers of the b-tree pages that hold something where nothing should be.
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

// unallocated is the part of a b-tree page between its cell pointers and its cells
// (sqlite.org/fileformat2.html, section 1.6). It is empty if the page does not make sense.
func unallocated(number int64, page []byte) []byte {
	header := 0
	if number == 1 {
		header = 100 // the file's own
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
