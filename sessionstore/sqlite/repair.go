package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Report describes what [Repair] did.
type Report struct {
	// Damaged is the path to which the damaged file was moved, "" if the store was not damaged and
	// nothing was changed.
	Damaged string
	// Sessions and Updates are the numbers of sessions and of updates in their histories that were
	// kept.
	Sessions, Updates int
	// Incomplete lists the kept sessions that lost something.
	Incomplete []sessionstore.ID
	// Lost lists the sessions that could not be kept, as far as their ids can be read.
	Lost []sessionstore.ID
}

// Repair replaces a damaged store by a new one with everything that can be read. It works on
// copies, which need as much space again, and moves the damaged file aside when the new file is
// complete. It fails if a process has the store open, as far as the system can tell. It does not
// change a file that is not a store or that needs a newer program.
func Repair(ctx context.Context, o Options) (Report, error) {
	s := New(o)
	defer s.end()
	path := filepath.Join(o.Dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Report{}, s.explain(err)
	}
	var unlock func()
	err := s.retry(ctx, func() (err error) {
		unlock, err = lockFile(filepath.Join(o.Dir, lockFileName))
		return err
	})
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	if pid, used := usedBy(path); used {
		return Report{}, fmt.Errorf("session store %s: process %d has it open; "+
			"close every editor that uses it, then try again", path, pid)
	}
	tidy(o.Dir, s.options.Logger)
	report, err := s.rebuild(ctx, path)
	return report, s.explain(err)
}

// rebuild creates the new file in a separate directory, and then moves it to the place of the
// damaged one.
func (s *Store) rebuild(ctx context.Context, path string) (Report, error) {
	work, err := os.MkdirTemp(s.options.Dir, repairPrefix)
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(work)
	damaged, fresh := filepath.Join(work, "damaged.db"), filepath.Join(work, "new.db")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err := copyFile(path+suffix, damaged+suffix); err != nil {
			return Report{}, err
		}
	}
	report, healthy, err := s.copyReadable(ctx, damaged, fresh)
	if err != nil || healthy {
		return Report{}, err
	}
	report.Damaged = filepath.Join(s.options.Dir,
		damagedPrefix+s.options.Now().UTC().Format("20060102T150405.000")+".db")
	if err := replaceStore(path, report.Damaged, fresh); err != nil {
		return Report{}, err
	}
	return report, nil
}

// copyFile copies a file, readable by the user only, if it exists.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// replaceStore moves the store at path to aside, and the file fresh to path. If that fails, it
// moves everything back, in particular the log, which contains commits. If the file system has hard
// links, there is a store at path all the time, because a program that found none would create an
// empty one.
func replaceStore(path, aside, fresh string) (err error) {
	var moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, suffix := range slices.Backward(moved) {
			err = errors.Join(err, os.Rename(aside+suffix, path+suffix))
		}
	}()
	move := func(suffix string) error {
		err := os.Rename(path+suffix, aside+suffix)
		if err == nil {
			moved = append(moved, suffix)
		}
		return err
	}
	for _, suffix := range []string{"-shm", "-wal", "-journal"} {
		if err := move(suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if os.Link(path, aside) == nil {
		if err := os.Rename(fresh, path); err != nil {
			return errors.Join(err, os.Remove(aside))
		}
		return nil
	}
	if err := move(""); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// copyReadable creates the file fresh with what can be read of damaged. healthy reports that there
// was nothing to repair.
func (s *Store) copyReadable(
	ctx context.Context, damaged, fresh string,
) (report Report, healthy bool, err error) {
	pragmas := []string{"busy_timeout(500)", "trusted_schema(OFF)", "query_only(ON)"}
	from, err := openPool(dsn(damaged, "deferred", pragmas), 1)
	if err != nil {
		return Report{}, false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	intact, err := examine(ctx, from, s.steps)
	if err != nil {
		return Report{}, false, err
	}
	if err := createFile(fresh); err != nil {
		return Report{}, false, err
	}
	// With the rollback journal there is only one file to move.
	to, err := connect(fresh, journalRollback)
	if err != nil {
		return Report{}, false, err
	}
	defer func() { err = errors.Join(err, to.close()) }()
	if err := to.prepare(ctx, s.steps); err != nil {
		return Report{}, false, err
	}
	err = inTransaction(ctx, to.writer, nil, func(tx *transaction) error {
		c := &copier{from: from, to: tx, kept: map[int64]sessionstore.ID{},
			incomplete: map[int64]bool{}}
		report, err = c.copy(ctx)
		healthy = intact && !c.lossy
		return err
	})
	if err != nil {
		return Report{}, false, err
	}
	return report, healthy, nil
}

// examine checks a file for damage. It returns an error for an undamaged file that belongs to
// another program or needs a newer one.
func examine(ctx context.Context, db *sql.DB, steps []step) (intact bool, err error) {
	var verdict string
	err = db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict)
	intact = err == nil && verdict == "ok"
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, nil // not even a database
	}
	defer conn.Close()
	fresh, err := recognise(ctx, conn)
	if errors.As(err, new(*foreignError)) && intact {
		return false, err
	}
	if err != nil || fresh {
		return intact && err == nil, nil
	}
	if _, err = versionOf(ctx, conn, steps); isOther(err) {
		return false, err
	}
	return intact && err == nil, nil
}

// copier copies the readable rows of a damaged file to a new one.
type copier struct {
	from *sql.DB
	to   *transaction
	// kept are the ids of the sessions that were copied, by key. incomplete has the keys of those
	// that lack something.
	kept       map[int64]sessionstore.ID
	incomplete map[int64]bool
	// lossy reports whether a row could not be read or was invalid.
	lossy bool
}

// unknownAgent is the kind of agents that could not be read.
const unknownAgent = "unknown"

// The columns that are copied. A newer program may have added others.
const (
	agentColumns   = "key, kind, profile"
	sessionColumns = "key, id, agent, cwd, dirs, real_cwd, real_dirs, " +
		"cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash, " +
		"title, created, updated, generation, turns, open, strand, last"
	segmentColumns   = "strand, seq, turn, updates, body"
	tombstoneColumns = "agent, name, deleted"
)

// detailTables are the tables with rows of a session, and their columns.
var detailTables = [][2]string{
	{"runtime_states", "session, body"},
	{"runtime_keys", "session, agent, name, imported, listed"},
	{"turns", "session, number, started"},
	{"inherits", "session, last, strand"},
	{"states", "session, kind, body"},
	{"labels", "session, archived, renamed, meta"},
	{"charges", "key, session, agent, at, source, meter, unit, amount, reading, mark"},
}

func (c *copier) copy(ctx context.Context) (report Report, err error) {
	if err := c.copyAgents(ctx); err != nil {
		return Report{}, err
	}
	known, err := c.rowids(ctx, "SELECT key, id FROM sessions", "sqlite_autoindex_sessions_1", "id")
	if err != nil {
		return Report{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if err := c.copySession(ctx, key); err != nil {
			return Report{}, err
		}
	}
	for _, table := range detailTables {
		name, columns := table[0], table[1]
		for _, key := range slices.Sorted(maps.Keys(c.kept)) {
			complete, err := c.copyTable(ctx, name, columns, "session = ?", key)
			if err != nil {
				return Report{}, err
			}
			if !complete {
				c.incomplete[key] = true
			}
		}
	}
	if _, err := c.copyTable(ctx, "tombstones", tombstoneColumns, "1 = ?", 1); err != nil {
		return Report{}, err
	}
	segments, err := c.rowids(ctx, "SELECT rowid, '' FROM segments", "sqlite_autoindex_segments_1",
		"strand, seq")
	if err != nil {
		return Report{}, err
	}
	for _, rowid := range slices.Sorted(maps.Keys(segments)) {
		if err := c.copySegment(ctx, rowid); err != nil {
			return Report{}, err
		}
	}
	if err := c.finish(ctx); err != nil {
		return Report{}, err
	}
	if err := c.findMissingSegments(ctx); err != nil {
		return Report{}, err
	}
	return c.report(ctx, known)
}

// report sums up the copy. known are the ids of the sessions of the damaged file.
func (c *copier) report(ctx context.Context, known map[int64]string) (report Report, err error) {
	lost := map[sessionstore.ID]bool{}
	for key, id := range known {
		if _, kept := c.kept[key]; !kept {
			lost[sessionstore.ID(id)] = true
			c.lossy = true
		}
	}
	for _, id := range c.kept {
		delete(lost, id) // a damaged file may have an id twice
	}
	for id := range lost {
		report.Lost = append(report.Lost, plainID(id))
	}
	for key := range c.incomplete {
		report.Incomplete = append(report.Incomplete, plainID(c.kept[key]))
	}
	slices.Sort(report.Incomplete)
	slices.Sort(report.Lost)
	report.Sessions = len(c.kept)
	err = c.to.QueryRowContext(ctx,
		"SELECT coalesce(sum(updates), 0) FROM segments").Scan(&report.Updates)
	return report, err
}

// rows calls do with each row of a query on the damaged file, until one cannot be read. do reports
// whether the row is valid. complete reports whether all rows were read and are valid. The error is
// that of do or ctx.
func (c *copier) rows(
	ctx context.Context, query string, args []any, do func(values []any) (bool, error),
) (complete bool, err error) {
	defer func() { c.lossy = c.lossy || !complete }()
	rows, err := c.from.QueryContext(ctx, query, args...)
	if err != nil {
		return false, ctx.Err()
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return false, ctx.Err()
	}
	complete = true
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			complete = false
			continue
		}
		valid, err := do(values)
		if err != nil {
			return false, err
		}
		complete = complete && valid
	}
	return complete && rows.Err() == nil, ctx.Err()
}

// rowids returns the results of a query for a rowid and a text. It reads the table and an index of
// it, each from both ends, so that a damaged page hides few rows.
func (c *copier) rowids(ctx context.Context, query, index, order string) (map[int64]string, error) {
	found := map[int64]string{}
	for _, scan := range []string{
		" NOT INDEXED ORDER BY rowid", " NOT INDEXED ORDER BY rowid DESC",
		" INDEXED BY " + index + " ORDER BY " + order,
		" INDEXED BY " + index + " ORDER BY " + strings.ReplaceAll(order, ",", " DESC,") + " DESC",
	} {
		_, err := c.rows(ctx, query+scan, nil, func(values []any) (bool, error) {
			key, ok := values[0].(int64)
			text, isText := values[1].(string)
			if ok && isText && found[key] == "" {
				found[key] = text
			}
			return ok && isText, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// copyTable copies the rows of a table that match a condition.
func (c *copier) copyTable(
	ctx context.Context, table, columns, condition string, value any,
) (complete bool, err error) {
	query := "SELECT " + columns + " FROM " + table + " WHERE " + condition
	return c.rows(ctx, query, []any{value}, func(values []any) (bool, error) {
		return c.insert(ctx, table, columns, values)
	})
}

// insert stores a row in the new file. It reports false if the row contradicts the schema or
// another row.
func (c *copier) insert(ctx context.Context, table, columns string, values []any) (bool, error) {
	places := "?" + strings.Repeat(", ?", len(values)-1)
	return c.execute(ctx, "INSERT INTO "+table+" ("+columns+") VALUES ("+places+")", values...)
}

// execute runs a statement on the new file. It reports false if the file rejects the values.
func (c *copier) execute(ctx context.Context, text string, values ...any) (bool, error) {
	_, err := c.to.ExecContext(ctx, text, values...)
	if err != nil && hintFor(err) == hintRepair {
		return false, nil
	}
	return err == nil, err
}

// copyAgents copies the agents that the table or its index contains.
func (c *copier) copyAgents(ctx context.Context) error {
	agents, err := c.rowids(ctx, "SELECT key, kind || char(0) || profile FROM agents",
		"sqlite_autoindex_agents_1", "kind, profile")
	for key, names := range agents {
		kind, profile, _ := strings.Cut(names, "\x00")
		if _, err := c.insert(ctx, "agents", agentColumns, []any{key, kind, profile}); err != nil {
			return err
		}
	}
	return err
}

func (c *copier) copySession(ctx context.Context, key int64) error {
	query := "SELECT " + sessionColumns + " FROM sessions WHERE key = ?"
	_, err := c.rows(ctx, query, []any{key}, func(values []any) (bool, error) {
		var texts [5]string // id, cwd, dirs, real_cwd, real_dirs
		for i, column := range []int{1, 3, 4, 5, 6} {
			texts[i], _ = values[column].(string)
		}
		keys, err := parsedKeys{}.parse(keyTexts(texts[1:]))
		if err != nil || texts[0] == "" {
			return false, nil
		}
		copy(values[3:], keyValues(keys))
		prefix, _ := split(texts[0])
		// A session without its agent would not be listed at all.
		known, err := c.execute(ctx,
			"INSERT OR IGNORE INTO agents (key, kind, profile) VALUES (?1, ?2, 'agent ' || ?1)",
			values[2], prefix+unknownAgent)
		if err != nil || !known {
			return false, err
		}
		copied, err := c.insert(ctx, "sessions", sessionColumns, values)
		if copied {
			c.kept[key] = sessionstore.ID(texts[0])
		}
		return copied, err
	})
	return err
}

func (c *copier) copySegment(ctx context.Context, rowid int64) error {
	query := "SELECT " + segmentColumns + " FROM segments WHERE rowid = ?"
	_, err := c.rows(ctx, query, []any{rowid}, func(values []any) (bool, error) {
		body, _ := values[4].([]byte)
		lines := bytes.Split(body, []byte("\n"))
		updates, ok := values[3].(int64)
		if ok && len(lines) == int(updates)+1 {
			lines = lines[:updates] // the last one is the checksum
		}
		if !ok || len(lines) != int(updates) {
			return false, nil
		}
		for _, line := range lines {
			if _, err := sessionstore.ParseUpdate(line); err != nil {
				return false, nil
			}
		}
		return c.insert(ctx, "segments", segmentColumns, values)
	})
	return err
}

// finish makes the new file consistent. It deletes segments that no session needs, and makes sure
// that no generation is used twice.
func (c *copier) finish(ctx context.Context) error {
	var generations int64
	// If it cannot be read the sessions tell.
	_ = c.from.QueryRowContext(ctx, "SELECT generations FROM meta").Scan(&generations)
	_, err := c.to.ExecContext(ctx, `
		DELETE FROM segments WHERE strand NOT IN
			(SELECT strand FROM sessions UNION SELECT strand FROM inherits);
		UPDATE sessions SET last = max(last, coalesce(
			(SELECT max(seq) FROM segments WHERE segments.strand = sessions.strand), 0));
		UPDATE meta SET generations = max(?,
			(SELECT coalesce(max(generation), 0) FROM sessions),
			(SELECT coalesce(max(strand), 0) FROM sessions),
			(SELECT coalesce(max(strand), 0) FROM inherits)) + 1`, generations)
	return err
}

// findMissingSegments marks the sessions whose history lacks segments as incomplete.
func (c *copier) findMissingSegments(ctx context.Context) error {
	for key := range c.kept {
		r := row{key: key}
		err := c.to.QueryRowContext(ctx, "SELECT strand, last FROM sessions WHERE key = ?", key).
			Scan(&r.strand, &r.last)
		if err != nil {
			return err
		}
		spans, err := r.spans(c.to, r.last)
		if err != nil {
			return err
		}
		after := int64(0)
		for _, s := range spans {
			var n int64
			err := c.to.QueryRowContext(ctx,
				"SELECT count(*) FROM segments WHERE strand = ? AND seq > ? AND seq <= ?",
				s.strand, after, s.last).Scan(&n)
			if err != nil {
				return err
			}
			if n < s.last-after {
				c.incomplete[key] = true
			}
			after = s.last
		}
	}
	return nil
}
