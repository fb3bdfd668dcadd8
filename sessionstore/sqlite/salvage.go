package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// salvage reads a damaged file.
type salvage struct {
	db *sql.DB
	// intact tells that nothing wrong was found with the file so far.
	intact bool
}

// openSalvage opens a copy of a damaged file. One that is sound, and not this program's, is refused.
func openSalvage(ctx context.Context, path string, steps []step) (*salvage, error) {
	db, err := openPool(dsn(path, "deferred", []string{"busy_timeout(500)", "trusted_schema(OFF)", "query_only(ON)"}), 1)
	if err != nil {
		return nil, err
	}
	f := &salvage{db: db}
	if err := f.examine(ctx, len(steps)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

func (f *salvage) close() error { return f.db.Close() }

func (f *salvage) examine(ctx context.Context, known int) error {
	var verdict string
	err := f.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
	f.intact = err == nil && verdict == "ok"
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return nil // it is not even a database
	}
	defer conn.Close()
	fresh, err := recognise(ctx, conn)
	if errors.As(err, new(*foreignError)) && f.intact {
		return err
	}
	if err != nil || fresh {
		return nil
	}
	var oldest int
	err = conn.QueryRowContext(ctx, "SELECT oldest FROM meta").Scan(&oldest)
	if err == nil && oldest > known {
		return &newerError{oldest: oldest, version: known}
	}
	f.intact = f.intact && err == nil
	return nil
}

// scanner is one row.
type scanner interface{ Scan(into ...any) error }

// maxRefusals is how often in a row a table is asked for rows that cannot be read before it is given up.
const maxRefusals = 1000

// each goes through the rows of a table by their rowid, which must be the first column of columns. What lies on an
// unreadable page is skipped: from there on the range is halved, long ranges first, or low ones if the table's
// end is unknown, until the pages that can be read are found. do returns a [*keepError] for failures of the new file.
func (f *salvage) each(ctx context.Context, table, columns, rowid string, do func(scanner) (int64, error)) error {
	text := "SELECT " + columns + " FROM " + table + " NOT INDEXED WHERE " + rowid + " > ? AND " + rowid + " <= ? ORDER BY " + rowid
	type part struct{ after, last int64 }
	var last int64
	// Where the end of the table cannot be read, nearly all of the range behind its rows is unreadable.
	endless := f.db.QueryRowContext(ctx, "SELECT max("+rowid+") FROM "+table+" NOT INDEXED HAVING max("+rowid+") > 0").Scan(&last)
	if errors.Is(endless, sql.ErrNoRows) {
		return nil
	}
	if endless != nil {
		last = math.MaxInt64
	}
	refusals := 0
	for parts := []part{{0, last}}; len(parts) > 0 && refusals < maxRefusals; {
		p := parts[0]
		parts = parts[1:]
		reached, err := f.readRange(ctx, text, p.after, p.last, do)
		var failed *keepError
		switch {
		case errors.As(err, &failed):
			return failed.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			refusals = 0
			continue
		}
		if refusals++; reached > p.after {
			refusals = 1
		}
		// The row after reached cannot be read.
		if reached < p.last-1 {
			middle := reached + (p.last-reached)/2
			halves := []part{{reached, middle}, {middle, p.last}}
			if endless != nil {
				parts = append(halves, parts...)
			} else {
				parts = append(parts, halves...)
			}
		}
	}
	return nil
}

// readRange reads rows until one cannot be read, and returns the rowid of the last one that could.
func (f *salvage) readRange(ctx context.Context, text string, after, last int64, do func(scanner) (int64, error)) (reached int64, err error) {
	rows, err := f.db.QueryContext(ctx, text, after, last)
	if err != nil {
		return after, err
	}
	defer rows.Close()
	for reached = after; rows.Next(); {
		id, err := do(rows)
		if err != nil {
			return reached, err
		}
		reached = max(reached, id) // a damaged page may say anything
	}
	return reached, rows.Err()
}

// keepError is a failure of the new file.
type keepError struct{ err error }

func (e *keepError) Error() string { return e.err.Error() }

// knownIDs are the ids of all sessions by the index of ids, which may be whole where the table is not.
func (f *salvage) knownIDs(ctx context.Context) (known []sessionstore.ID) {
	rows, err := f.db.QueryContext(ctx, "SELECT id FROM sessions INDEXED BY sqlite_autoindex_sessions_1 ORDER BY id")
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if rows.Scan(&id) == nil {
			known = append(known, sessionstore.ID(id))
		}
	}
	_ = rows.Err() // what was read is what is known
	return slices.Compact(known)
}
