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
// are overwritten already, go back to the file system, and the log is emptied. If readers
// elsewhere hold the log for long, the next delete or the last program to
// close the store empties it.
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
	for time.Now().Before(deadline) && ctx.Err() == nil && s.life.Err() == nil {
		done, err := scrubSome(ctx, db)
		if done || err != nil && !inTheWay(err) {
			return err
		}
	}
	return nil
}

// scrubSome gives back some free pages, or empties the log if there are none. It waits for the busy
// time of the connection at most.
func scrubSome(ctx context.Context, db *database) (done bool, err error) {
	ctx = context.WithoutCancel(ctx)
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	var free int
	if err := conn.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
		return false, err
	}
	if free > 0 {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
		return false, err
	}
	var busy, log, moved int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	return busy == 0, err
}
