package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is a session's row, without what only lists and clients need.
type row struct {
	id                sessionstore.ID
	key, agent        int64
	generation, turns int64
	running           []int64 // the numbers of the running turns
	first             int64   // the number of the first turn since open
	open              int64   // the first segment of the running turns, 0 between turns
	strand, last      int64   // where its segments are, and the number of the last one
	complete, seen    int64   // how far its history is in passages
	created, updated  int64
	archived, renamed bool
	imported          bool   // it came from its agent's list
	listed            int64  // see the schema
	name              []byte // of its tombstone, nil if it has no state key
	meta              []byte
	title             string
	cwd, realCwd      string

	active bool // storing the row is activity
}

// all returns the owner's rows that match a condition, whose arguments are $2 and later.
func (tx *transaction) all(condition string, args ...any) (found []*row, err error) {
	var (
		r       row
		running string
	)
	err = tx.each([]any{(*string)(&r.id), &r.key, &r.agent, &r.generation, &r.turns, &running,
		&r.first, &r.open, &r.strand, &r.last, &r.complete, &r.seen, &r.created, &r.updated,
		&r.archived, &r.renamed, &r.imported, &r.listed, &r.name, &r.meta, &r.title, &r.cwd,
		&r.realCwd}, func() error {
		one := r
		one.running, err = parseNumbers(running)
		found = append(found, &one)
		r.name, r.meta = nil, nil
		return err
	}, `SELECT id, key, agent, generation, turns, running, first, open, strand, last, complete,
			seen, created, updated, archived, renamed, imported, listed, name, meta, title, cwd, real_cwd
		FROM sessions WHERE owner = $1 AND `+condition, args...)
	return found, err
}

// one returns and locks the row that matches a condition, or nil.
func (tx *transaction) one(condition string, args ...any) (*row, error) {
	found, err := tx.all(condition+tx.forWrite(), args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// find returns the row of a session, which it locks if asked to, or a NotFoundError.
func (tx *transaction) find(id sessionstore.ID, lock string) (*row, error) {
	if id.Validate() != nil {
		return nil, &sessionstore.NotFoundError{ID: id}
	}
	found, err := tx.all("id = $2"+lock, string(id))
	if err == nil && len(found) == 0 {
		err = &sessionstore.NotFoundError{ID: id}
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// forWrite is what ends a query in order to lock rows that will be written.
func (tx *transaction) forWrite() string { return tx.db.Traits().ForWrite }

func parseNumbers(text string) (numbers []int64, err error) {
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, &DamageError{err}
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func formatNumbers(numbers []int64) string {
	var b strings.Builder
	for _, n := range numbers {
		b.WriteString(strconv.FormatInt(n, 10) + " ")
	}
	return b.String()
}

// finished returns the last segment and the number of turns of the finished part.
func (r *row) finished() (last, turns int64) {
	if r.open != 0 {
		return r.open - 1, r.first - 1
	}
	return r.last, r.turns
}

// store writes the columns that turns and drafts change, and others, whose values begin with $11.
// If the row is active, this is activity.
func (tx *transaction) store(r *row, others string, values ...any) error {
	args := []any{string(r.id), r.turns, formatNumbers(r.running), r.first, r.open, r.last,
		r.complete, r.seen, int64(r.listing())}
	args = append(args, values...)
	if r.active {
		args = append(args, active(r.updated, tx.now))
		others += fmt.Sprintf(", updated = $%d", len(args)+1)
	}
	return tx.exec("UPDATE sessions SET turns = $3, running = $4, first = $5, open = $6, "+
		"last = $7, complete = $8, seen = $9, listing = $10, stale = "+sqlBool(r.seen < r.last)+others+
		" WHERE owner = $1 AND id = $2", args...)
}

// sqlBool returns a constant.
func sqlBool(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}

// listing returns which lists show the session.
func (r *row) listing() Listing {
	switch {
	case r.archived:
		return Archived
	case r.turns > 0 || r.last > 0 || r.imported:
		return Ordinary
	}
	return Unused
}

// relist sets the listing of a session whose other columns have changed.
func (tx *transaction) relist(id sessionstore.ID) error {
	return tx.set(id, "listing = CASE WHEN archived THEN 1 "+
		"WHEN turns > 0 OR last > 0 OR imported THEN 0 ELSE 2 END")
}

// set changes columns of a session. The values are $3 and later.
func (tx *transaction) set(id sessionstore.ID, columns string, values ...any) error {
	return tx.exec("UPDATE sessions SET "+columns+" WHERE owner = $1 AND id = $2",
		append([]any{string(id)}, values...)...)
}

// lockAgent keeps other transactions from changing several sessions of an agent. It is called
// before any session is locked.
func (tx *transaction) lockAgent(agent int64) error {
	if tx.forWrite() == "" {
		return nil
	}
	return tx.row([]any{&agent}, "SELECT key FROM agents WHERE owner = $1 AND key = $2"+
		tx.forWrite(), agent)
}

// lockWithAgent locks a session's agent, and then the session.
func (tx *transaction) lockWithAgent(id sessionstore.ID) (*row, error) {
	before, err := tx.find(id, "")
	if err != nil || tx.forWrite() == "" {
		return before, err
	}
	if err := tx.lockAgent(before.agent); err != nil {
		return nil, err
	}
	r, err := tx.find(id, tx.forWrite())
	if err == nil && r.agent != before.agent {
		err = ErrChanged
	}
	return r, err
}

// update calls change with the session of l, which is locked, in a transaction.
func (s *Store) update(
	ctx context.Context, l sessionstore.Lease, change func(*transaction, *row) error,
) error {
	return s.write(ctx, func(tx *transaction) error {
		r, err := tx.find(l.ID, tx.forWrite())
		if err == nil {
			err = checkLease(l, r.generation)
		}
		if err != nil {
			return err
		}
		return change(tx, r)
	})
}

// Create implements [sessionstore.Store].
func (s *Store) Create(
	ctx context.Context, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.write(ctx, func(tx *transaction) error {
		agent, err := tx.agentKey(n.Agent, n.StateKey != "")
		if err != nil {
			return err
		}
		r, err := tx.insert(agent, n, tx.now)
		if err == nil {
			lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		}
		return err
	})
	return lease, err
}

// agentKey returns the key of an agent, which it adds if it is new, and locks it if asked to.
func (tx *transaction) agentKey(a sessionstore.Agent, lock bool) (key int64, err error) {
	find := func() error {
		return tx.row([]any{&key}, "SELECT key FROM agents "+
			"WHERE owner = $1 AND kind = $2 AND profile = $3", a.Kind, a.Profile)
	}
	if err = find(); errors.Is(err, errNoRow) {
		err = tx.exec("INSERT INTO agents (owner, kind, profile) VALUES ($1, $2, $3) "+
			"ON CONFLICT (owner, kind, profile) DO NOTHING", a.Kind, a.Profile)
		if err == nil {
			err = find()
		}
	}
	if err == nil && lock {
		err = tx.lockAgent(key)
	}
	return key, err
}

// insert stores a session without a history, which was active at a time. If it has a state key the
// caller has locked the agent. It returns ErrExists if there is a session with the id; the caller
// rolls back.
func (tx *transaction) insert(agent int64, n sessionstore.NewSession, updated int64) (*row, error) {
	generation, err := tx.next()
	if err != nil {
		return nil, err
	}
	r := &row{id: n.ID, agent: agent, key: generation, generation: generation, strand: generation,
		updated: updated, cwd: n.Keys.Roots.Cwd().String()}
	args := append([]any{tx.owner, string(n.ID)}, keyColumns(n.Keys)...)
	args = append(args, agent, sessionstore.CleanTitle(n.Title), updated, generation, []byte{},
		int64(Unused))
	added, err := tx.Exec(`
		INSERT INTO sessions (owner, id, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash,
			real_cwd_hash, real_dirs_hash, agent, title, created, updated, key, generation, strand,
			meta, listing)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $14, $14, $15,
			$16)
		ON CONFLICT (owner, id) DO NOTHING`, args...)
	if err != nil {
		return nil, err
	}
	if added == 0 {
		return nil, sessionstore.ErrExists
	}
	if n.StateKey != "" {
		err = tx.setStateKey(r, n.StateKey)
	}
	if err == nil && len(n.State) > 0 {
		err = tx.setState(r, n.State)
	}
	return r, err
}

// recordColumns are the columns of the sessions s that scanRecord reads. With a join of the agents
// PostgreSQL would use an index of lists while it has no statistics.
const recordColumns = `s.id, (SELECT kind FROM agents WHERE key = s.agent),
	(SELECT profile FROM agents WHERE key = s.agent), cwd, dirs, real_cwd, real_dirs, title,
	created, updated, generation, turns, archived, renamed, meta, listed`

// scanRecord reads a session, and further columns.
func scanRecord(
	rows Rows, parsed parsedKeys, more ...any,
) (s sessionstore.Session, err error) {
	var (
		texts            keyTexts
		created, updated int64
		listed           int64 // negative if the session is gone, 0 if it was not listed
		meta             []byte
	)
	err = rows.Scan(append([]any{(*string)(&s.ID), &s.Agent.Kind, &s.Agent.Profile, &texts[0],
		&texts[1], &texts[2], &texts[3], &s.Title, &created, &updated, &s.Generation, &s.Turns,
		&s.Archived, &s.Renamed, &meta, &listed}, more...)...)
	if err != nil {
		return s, err
	}
	s.Created, s.Updated = toTime(created), toTime(updated)
	if s.Gone = listed < 0; listed != 0 {
		s.Listed = toTime(max(listed, -listed))
	}
	if len(meta) > 0 {
		s.Meta = meta
	}
	s.Keys, err = parsed.parse(texts)
	return s, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (got sessionstore.Session, err error) {
	if id.Validate() != nil {
		return got, &sessionstore.NotFoundError{ID: id}
	}
	err = s.read(ctx, func(tx *transaction) error {
		found := false
		err := tx.rows(func(rows Rows) (err error) {
			var state, stateKey []byte
			found = true
			got, err = scanRecord(rows, parsedKeys{}, &state, &stateKey)
			got.State, got.StateKey = state, string(stateKey)
			return err
		}, "SELECT "+recordColumns+", body, state_key FROM sessions s"+
			" LEFT JOIN states st ON st.owner = s.owner AND st.session = s.key AND st.kind = ''"+
			" WHERE s.owner = $1 AND s.id = $2", string(id))
		if err == nil && !found {
			err = &sessionstore.NotFoundError{ID: id}
		}
		return err
	})
	return got, err
}

// Activate implements [sessionstore.Store].
func (s *Store) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (lease sessionstore.Lease, err error) {
	if err := a.Keys.Validate(); err != nil {
		return lease, err
	}
	history, err := s.draftOf(id, a.History)
	if err != nil {
		return lease, err
	}
	err = s.write(ctx, func(tx *transaction) error {
		find := func() (*row, error) { return tx.find(id, tx.forWrite()) }
		if a.State != nil {
			find = func() (*row, error) { return tx.lockWithAgent(id) }
		}
		r, err := find()
		if err == nil && a.Held != 0 {
			err = checkLease(sessionstore.Lease{ID: id, Generation: a.Held}, r.generation)
		}
		if err != nil {
			return err
		}
		if a.Held == 0 || history != nil {
			r.interruptTurns()
		}
		cwd, err := workspace.ParseDir(r.cwd)
		if err != nil {
			return &DamageError{err}
		}
		if err := tx.setKeys(r, a.Keys.WithCwd(cwd)); err != nil {
			return err
		}
		if a.State != nil {
			if err := tx.saveState(r, a.State, a.StateKey); err != nil {
				return err
			}
		}
		if history != nil {
			if err := history.appendTo(tx, r); err != nil {
				return err
			}
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return tx.store(r, "")
	})
	if err == nil && history != nil {
		s.purgeSoon()
	}
	return lease, err
}

// Move implements [sessionstore.Store].
func (s *Store) Move(
	ctx context.Context, l sessionstore.Lease, k sessionstore.Keys,
) (moved sessionstore.Lease, err error) {
	if err := k.Validate(); err != nil {
		return moved, err
	}
	err = s.update(ctx, l, func(tx *transaction, r *row) error {
		err := tx.setKeys(r, k)
		moved = sessionstore.Lease{ID: l.ID, Generation: r.generation}
		if err == nil {
			err = tx.set(r.id, "listed = 0")
		}
		return err
	})
	if err != nil {
		return sessionstore.Lease{}, err
	}
	return moved, nil
}

// setKeys stores new roots and a new generation, which it sets in r.
func (tx *transaction) setKeys(r *row, k sessionstore.Keys) (err error) {
	if r.generation, err = tx.next(); err != nil {
		return err
	}
	return tx.set(r.id, `cwd = $3, dirs = $4, real_cwd = $5, real_dirs = $6, cwd_hash = $7,
		dirs_hash = $8, real_cwd_hash = $9, real_dirs_hash = $10, generation = $11`,
		append(keyColumns(k), r.generation)...)
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.update(ctx, l, func(tx *transaction, r *row) error {
		return tx.set(r.id, "title = CASE WHEN renamed THEN title ELSE $3 END",
			sessionstore.CleanTitle(title))
	})
}

// Rename implements [sessionstore.Store].
func (s *Store) Rename(ctx context.Context, id sessionstore.ID, title string) error {
	title = sessionstore.CleanTitle(title)
	return s.label(ctx, id, "title = $3, renamed = $4", title, title != "")
}

// Archive implements [sessionstore.Store].
func (s *Store) Archive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived = TRUE")
}

// Unarchive implements [sessionstore.Store].
func (s *Store) Unarchive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived = FALSE")
}

// label changes columns of a session that must exist.
func (s *Store) label(
	ctx context.Context, id sessionstore.ID, columns string, values ...any,
) error {
	return s.write(ctx, func(tx *transaction) error {
		if _, err := tx.find(id, tx.forWrite()); err != nil {
			return err
		}
		if err := tx.set(id, columns, values...); err != nil {
			return err
		}
		return tx.relist(id)
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	err := s.write(ctx, func(tx *transaction) error {
		r, err := tx.lockWithAgent(l.ID)
		if err == nil {
			err = checkLease(l, r.generation)
		}
		if err != nil {
			return err
		}
		return tx.saveState(r, state, key)
	})
	s.purgeSoon() // another session may have been deleted
	return err
}

// saveState stores the state of a session, which it removes if empty, and its state key. The caller
// has locked the agent.
func (tx *transaction) saveState(r *row, state []byte, key string) error {
	if err := tx.setStateKey(r, key); err != nil {
		return err
	}
	if len(state) == 0 {
		return tx.exec("DELETE FROM states WHERE owner = $1 AND session = $2 AND kind = ''", r.key)
	}
	return tx.setState(r, state)
}

// setState stores the backend's own value.
func (tx *transaction) setState(r *row, state []byte) error {
	return tx.addStates(r.key, []sessionstore.Update{{Raw: state}})
}

// Fork implements [sessionstore.Store].
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.write(ctx, func(tx *transaction) error {
		if _, err := tx.find(source, ""); err != nil {
			return err
		}
		agent, err := tx.agentKey(n.Agent, n.StateKey != "")
		if err != nil {
			return err
		}
		from, err := tx.find(source, tx.db.Traits().ForShare)
		if err != nil {
			return err
		}
		if n.Title == "" {
			n.Title = from.title
		}
		if n.State == nil && from.agent == agent {
			err = tx.row([]any{&n.State}, "SELECT body FROM states "+
				"WHERE owner = $1 AND session = $2 AND kind = ''", from.key)
		}
		if err != nil && !errors.Is(err, errNoRow) {
			return err
		}
		r, err := tx.insert(agent, n, tx.now)
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		return tx.copyHistory(from, r)
	})
	return lease, err
}

// copyHistory gives a new session the finished part of another's history, and its states and
// readings if both belong to the same agent.
func (tx *transaction) copyHistory(from, to *row) error {
	to.last, to.turns = from.finished()
	err := tx.exec(`
		INSERT INTO segments (owner, strand, seq, body)
		SELECT owner, CAST($3 AS bigint), seq, body FROM segments
		WHERE owner = $1 AND strand = $2 AND seq <= $4`, from.strand, to.strand, to.last)
	if err == nil && from.agent == to.agent {
		err = tx.exec(`
			INSERT INTO states (owner, session, kind, body)
			SELECT owner, CAST($3 AS bigint), kind, body FROM states
			WHERE owner = $1 AND session = $2 AND kind <> ''`, from.key, to.key)
		if err == nil {
			err = tx.inheritReadings(from, to)
		}
	}
	if err != nil {
		return err
	}
	return tx.store(to, "")
}

// Delete implements [sessionstore.Store].
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	err := s.write(ctx, func(tx *transaction) error {
		r, err := tx.lockWithAgent(id)
		if err != nil {
			return err
		}
		return tx.deleteSession(r)
	})
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return nil
	}
	s.purgeSoon()
	return err
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
// The caller has locked the agent.
func (tx *transaction) deleteSession(r *row) error {
	if r.name != nil {
		if err := tx.addTombstone(r.agent, r.name); err != nil {
			return err
		}
	}
	return tx.deleteRows(r)
}

// deleteRows deletes a session. Its history and its drafts are left to be purged.
func (tx *transaction) deleteRows(r *row) error {
	err := tx.exec("DELETE FROM sessions WHERE owner = $1 AND id = $2", string(r.id))
	if err != nil {
		return err
	}
	err = tx.execAll([]any{r.key}, "DELETE FROM states WHERE owner = $1 AND session = $2",
		"UPDATE drafts SET started = 0, session = 0 "+
			"WHERE owner = $1 AND session = $2 AND started > 0")
	if err != nil {
		return err
	}
	return tx.exec("INSERT INTO drafts (owner, strand, session, started) VALUES ($1, $2, $3, 0)",
		r.strand, r.key)
}
