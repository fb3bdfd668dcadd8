package stock

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
)

// Multiply stores every session without a history factor-1 times more, under ids of its own. It is
// much faster than storing them one by one, and knows of the store only what makes a
// row distinct: key, id, strand, and the time of its last activity, which is spread over the copies.
func (s *Store) Multiply(ctx context.Context, factor int) (err error) {
	dir := s.store.Dir()
	if err := s.store.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "sessions.db")) // the driver comes with package sqlite
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
		s.store = Open(dir).store
	}()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "PRAGMA cache_size = -262144"); err != nil { // KiB: the indexes fit in
		return err
	}
	names, values, err := columns(ctx, db)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`
		WITH RECURSIVE copies (copy) AS (SELECT 1 UNION ALL SELECT copy + 1 FROM copies WHERE copy < %d),
			top (strands) AS (SELECT generations FROM meta)
		INSERT INTO sessions (%s)
		SELECT %s FROM sessions, copies, top WHERE last = 0`, factor-1, names, values))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE meta SET generations = (SELECT max(strand) FROM sessions)")
	return err
}

// columns are the columns of a session's row but its key, and what a copy has in them.
func columns(ctx context.Context, db *sql.DB) (names, values string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM pragma_table_info('sessions') WHERE name <> 'key'")
	if err != nil {
		return "", "", err
	}
	defer rows.Close()
	var own, copied []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", "", err
		}
		own = append(own, name)
		switch name {
		case "id":
			name = "id || '-' || copy"
		case "strand":
			name = "strand + copy * strands"
		case "updated":
			name = "updated - copy"
		}
		copied = append(copied, name)
	}
	return strings.Join(own, ", "), strings.Join(copied, ", "), rows.Err()
}
