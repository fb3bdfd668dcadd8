package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Delete implements [sessionstore.Store]. The rows go in one transaction. Then the freed pages, which
// are overwritten already, go back to the file system, stale copies are overwritten, and the log
// is emptied. If readers elsewhere hold the log for long, the next delete or the last program
// to close the store empties it.
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	gone := false
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		gone = false
		r, err := find(ctx, tx, id)
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		gone = true
		if err := s.bury(ctx, tx, r.key); err != nil {
			return err
		}
		return remove(ctx, tx, r)
	})
	if err != nil || !gone {
		return err
	}
	return s.use(ctx, func(db *database) error { return s.explain(s.scrub(ctx, db)) })
}

func remove(ctx context.Context, tx *sql.Tx, r row) error {
	held, err := inherited(ctx, tx, r.key)
	if err != nil {
		return err
	}
	if err := dropDrafts(ctx, tx, "session = ?", r.key); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE key = ?", r.key); err != nil {
		return err
	}
	return release(ctx, tx, append(held, span{strand: r.strand}))
}

const (
	// vacuumPages is how many pages are given back in one go, so that other writers get their turn between.
	vacuumPages = 1000
	// scrubTime bounds how long a delete waits for readers elsewhere.
	scrubTime = 2 * time.Second
)

// scrub removes what the deleted rows left in the files. The session is deleted whatever becomes of it.
func (s *Store) scrub(ctx context.Context, db *database) error {
	deadline := time.Now().Add(min(scrubTime, s.options.Patience))
	for _, step := range []scrubbing{vacuum, sweep, truncate} {
		for done := false; !done; {
			if time.Now().After(deadline) || ctx.Err() != nil || s.life.Err() != nil {
				return nil
			}
			var err error
			if done, err = db.scrub(ctx, step); err != nil && !inTheWay(err) {
				return err
			}
		}
	}
	return nil
}

// scrubbing is a step of scrub. It does its work, or a part of it.
type scrubbing func(context.Context, *sql.Conn) (done bool, err error)

// scrub runs a step on the connection that writes, and gives that back, so that a step that waits
// does not keep others from writing.
func (d *database) scrub(ctx context.Context, step scrubbing) (bool, error) {
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

// truncate moves the log into the file and empties it. It waits for readers no longer than the busy
// time of the connection.
func truncate(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	var busy, log, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	return busy == 0, err
}
