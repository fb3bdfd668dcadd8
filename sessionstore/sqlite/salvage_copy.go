package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// lostAgent is the kind of agents whose names could not be read.
const lostAgent = "unknown"

// copying is one run of a repair.
type copying struct {
	from *salvage
	tx   *sql.Tx
	kept map[sessionstore.ID]int64 // the sessions' keys
	// filled counts the gaps that got a notice. Those of an earlier repair are not among them.
	filled int
}

// into copies everything that can be read and makes sense.
func (f *salvage) into(ctx context.Context, to *database) (report Report, err error) {
	tx, err := to.writer.BeginTx(ctx, nil)
	if err != nil {
		return Report{}, err
	}
	c := &copying{from: f, tx: tx, kept: map[sessionstore.ID]int64{}}
	steps := []func(context.Context) error{c.agents, c.sessions, c.belongings, c.tombstones, c.segments, c.settle}
	if err := f.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(new(int)); err != nil {
		steps = nil // it says not even what is in it
	}
	for _, do := range steps {
		if err := do(ctx); err != nil {
			return Report{}, errors.Join(err, rollback(tx))
		}
	}
	if report, err = c.report(ctx); err != nil {
		return Report{}, errors.Join(err, rollback(tx))
	}
	f.intact = f.intact && c.filled == 0 && len(report.Lost) == 0
	return report, tx.Commit()
}

// keep stores a row, unless it contradicts one that is stored.
func (c *copying) keep(ctx context.Context, text string, values ...any) error {
	if _, err := c.tx.ExecContext(ctx, text, values...); err != nil {
		return &keepError{err}
	}
	return nil
}

func (c *copying) agents(ctx context.Context) error {
	agent := func(row scanner) (key int64, err error) {
		var kind, profile string
		if err := row.Scan(&key, &kind, &profile); err != nil {
			return 0, err
		}
		return key, c.keep(ctx, "INSERT OR IGNORE INTO agents (key, kind, profile) VALUES (?, ?, ?)", key, kind, profile)
	}
	return c.from.each(ctx, "agents", "key, kind, profile", "key", agent)
}

func (c *copying) sessions(ctx context.Context) error {
	const columns = "key, id, agent, cwd, dirs, real_cwd, real_dirs, title, created, updated, generation, turns, open, strand, last"
	session := func(row scanner) (int64, error) {
		var (
			key, agent, created, updated, generation, turns, open, strand, last int64
			id, title                                                           string
			texts                                                               keyTexts
		)
		err := row.Scan(&key, &id, &agent, &texts[0], &texts[1], &texts[2], &texts[3], &title,
			&created, &updated, &generation, &turns, &open, &strand, &last)
		if err != nil {
			return 0, err
		}
		keys, err := knownKeys{}.parse(texts)
		if err != nil || id == "" {
			return key, nil
		}
		// A session without its agent would not be listed at all.
		if err := c.keep(ctx, "INSERT OR IGNORE INTO agents (key, kind, profile) VALUES (?1, ?2, 'agent ' || ?1)", agent, lostAgent); err != nil {
			return 0, err
		}
		values := append([]any{key, id, agent}, columnsOf(keys).values()...)
		values = append(values, title, created, updated, generation, turns, open, strand, last)
		err = c.keep(ctx, `
			INSERT OR IGNORE INTO sessions (key, id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
				title, created, updated, generation, turns, open, strand, last)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values...)
		c.kept[sessionstore.ID(id)] = key
		return key, err
	}
	return c.from.each(ctx, "sessions", columns, "key", session)
}

// belongings copies what hangs on the kept sessions but for segments: session by session, since these tables have no rowids.
func (c *copying) belongings(ctx context.Context) error {
	tables := []struct {
		read, write string
		columns     int
	}{
		{"SELECT session, body FROM runtime_states WHERE session = ?", "INSERT OR IGNORE INTO runtime_states VALUES (?, ?)", 2},
		{"SELECT session, agent, name, imported FROM runtime_keys WHERE session = ?", "INSERT OR IGNORE INTO runtime_keys VALUES (?, ?, ?, ?)", 4},
		{"SELECT session, number, started, ended, reason FROM turns WHERE session = ?", "INSERT OR IGNORE INTO turns VALUES (?, ?, ?, ?, ?)", 5},
		{"SELECT session, last, strand FROM inherits WHERE session = ?", "INSERT OR IGNORE INTO inherits VALUES (?, ?, ?)", 3},
		{"SELECT session, kind, body FROM states WHERE session = ?", "INSERT OR IGNORE INTO states VALUES (?, ?, ?)", 3},
	}
	for _, table := range tables {
		for _, key := range c.kept {
			if err := c.belonging(ctx, table.read, table.write, table.columns, key); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (c *copying) belonging(ctx context.Context, read, write string, columns int, session int64) error {
	values, into := make([]any, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	_, err := c.from.readRow(ctx, read, session, into, func() error { return c.keep(ctx, write, values...) })
	if failed := new(keepError); errors.As(err, &failed) && !damaging(failed.err) {
		return failed.err
	}
	return nil
}

// readRow scans each row of a query into into.
func (f *salvage) readRow(ctx context.Context, text string, session int64, into []any, do func() error) (n int, err error) {
	rows, err := f.db.QueryContext(ctx, text, session)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return n, err
		}
		if err := do(); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// damaging reports whether the new file refused a value that no sound file holds.
func damaging(err error) bool { return hintFor(err) == hintRepair }

// tombstones copies what was deleted and may not come back, as far as it can be read; older files have none.
func (c *copying) tombstones(ctx context.Context) error {
	rows, err := c.from.db.QueryContext(ctx, "SELECT agent, name, deleted FROM tombstones")
	if err != nil {
		return ctx.Err()
	}
	defer rows.Close()
	for rows.Next() {
		var agent, name, deleted any
		if rows.Scan(&agent, &name, &deleted) != nil {
			continue
		}
		err := c.keep(ctx, "INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?)", agent, name, deleted)
		if failed := new(keepError); errors.As(err, &failed) && !damaging(failed.err) {
			return failed.err
		}
	}
	return ctx.Err() // where reading ended otherwise, the rest is lost
}

func (c *copying) segments(ctx context.Context) error {
	segment := func(row scanner) (int64, error) {
		var (
			rowid, strand, seq, turn, updates int64
			body                              []byte
		)
		if err := row.Scan(&rowid, &strand, &seq, &turn, &updates, &body); err != nil {
			return 0, err
		}
		lines := bytes.Split(body, []byte("\n"))
		if len(lines) != int(updates) {
			return rowid, nil
		}
		for _, line := range lines {
			if _, err := sessionstore.ParseUpdate(line); err != nil {
				return rowid, nil
			}
		}
		return rowid, c.keep(ctx, "INSERT OR IGNORE INTO segments (strand, seq, turn, updates, body) VALUES (?, ?, ?, ?, ?)",
			strand, seq, turn, updates, body)
	}
	return c.from.each(ctx, "segments", "rowid, strand, seq, turn, updates, body", "rowid", segment)
}

// settle makes the new file consistent: nothing is there that no session needs, and no generation is used twice.
func (c *copying) settle(ctx context.Context) error {
	var handed int64
	_ = c.from.db.QueryRowContext(ctx, "SELECT generations FROM meta").Scan(&handed) // or else the sessions tell
	_, err := c.tx.ExecContext(ctx, `
		DELETE FROM segments WHERE strand NOT IN (SELECT strand FROM sessions UNION SELECT strand FROM inherits);
		UPDATE sessions SET last = max(last, coalesce((SELECT max(seq) FROM segments WHERE segments.strand = sessions.strand), 0));
		UPDATE meta SET generations = max(?,
			(SELECT coalesce(max(generation), 0) FROM sessions), (SELECT coalesce(max(strand), 0) FROM sessions),
			(SELECT coalesce(max(strand), 0) FROM inherits)) + 1`, handed)
	return err
}

func (c *copying) report(ctx context.Context) (report Report, err error) {
	if err := c.tx.QueryRowContext(ctx, "SELECT coalesce(sum(updates), 0) FROM segments").Scan(&report.Updates); err != nil {
		return Report{}, err
	}
	for id := range c.kept {
		r, err := find(ctx, c.tx, id)
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			report.Lost = append(report.Lost, id)
			continue
		}
		if err != nil {
			return Report{}, err
		}
		report.Sessions++
		incomplete, err := c.fillGaps(ctx, r)
		if err != nil {
			return Report{}, err
		}
		if incomplete {
			report.Incomplete = append(report.Incomplete, id)
		}
	}
	for _, id := range c.from.knownIDs(ctx) {
		if _, kept := c.kept[id]; !kept {
			report.Lost = append(report.Lost, id)
		}
	}
	slices.Sort(report.Incomplete)
	slices.Sort(report.Lost)
	return report, nil
}
