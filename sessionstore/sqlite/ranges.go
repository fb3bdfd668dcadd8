package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// indexRange is a part of one index: the sessions of an agent whose columns have certain
// values, in the order of a list.
type indexRange struct {
	columns []string // of cwd, real_cwd, dirs, real_dirs
	values  []column
}

// rangesOf are the ranges whose union is what q's filters match. A filter matches by its spelling or by its real path (A17).
func rangesOf(q sessionstore.Query) []indexRange {
	ranges := []indexRange{{}}
	if f := q.Cwd; f != nil {
		ranges = either(ranges, "cwd", dirColumn(f.Spelling), dirColumn(f.Real))
	}
	if f := q.Additional; f != nil {
		ranges = either(ranges, "dirs", dirsColumn(f.Spelling), realColumn(f.Real))
	}
	return ranges
}

// either splits each range in two: by name's column, and by the column of its real path.
func either(ranges []indexRange, name string, spelling, real column) []indexRange {
	var out []indexRange
	for _, r := range ranges {
		out = append(out, r.and(name, spelling), r.and("real_"+name, real))
	}
	return out
}

func (r indexRange) and(name string, value column) indexRange {
	return indexRange{
		columns: append(r.columns[:len(r.columns):len(r.columns)], name),
		values:  append(r.values[:len(r.values):len(r.values)], value),
	}
}

// query names its index, so that no statistics can talk SQLite into another plan. Only column names
// of this file go into its text.
func (r indexRange) query(agent int64, start place, limit int) (string, []any) {
	index := "by_" + strings.Join(r.columns, "_")
	if len(r.columns) == 0 {
		index = "by_activity"
	}
	where, args := "agent = ?", []any{agent}
	for i, name := range r.columns {
		where += " AND " + name + "_hash = ? AND " + name + " = ?"
		args = append(args, r.values[i].hash, r.values[i].text)
	}
	return "SELECT updated, id, key FROM sessions INDEXED BY " + index + " WHERE " + where +
		" AND (updated, id) < (?, ?) ORDER BY updated DESC, id DESC LIMIT ?", append(args, start.updated, start.id, limit)
}

func (r indexRange) read(ctx context.Context, tx *sql.Tx, agent int64, start place, limit int) ([]place, error) {
	text, args := r.query(agent, start, limit)
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var places []place
	for rows.Next() {
		var p place
		if err := rows.Scan(&p.updated, &p.id, &p.key); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, rows.Err()
}
