package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is the part of a session's row that writes need.
type row struct {
	id                sessionstore.ID
	agent, generation int64
	turns             int64
	running           []int64 // the numbers of the running turns
	first             int64   // the number of the first turn since open
	open              int64   // the first segment of the running turns, 0 between turns
	strand, last      int64   // where its segments are, and the number of the last one
	cwd               string
	active            bool // storing the row is activity
}

// The locks of a row. A transaction that keeps a session from changing need not keep others from
// doing the same.
const (
	unlocked = ""
	shared   = " FOR SHARE"
	forWrite = " FOR NO KEY UPDATE"
)

// find returns the row of a session, which it locks, or a NotFoundError.
func (tx *transaction) find(id sessionstore.ID, lock string) (*row, error) {
	if id.Validate() != nil {
		return nil, &sessionstore.NotFoundError{ID: id}
	}
	r := &row{id: id}
	err := tx.row(`
		SELECT agent, generation, turns, running, first, open, strand, last, cwd
		FROM sessions WHERE owner = $1 AND id = $2`+lock, string(id)).
		Scan(&r.agent, &r.generation, &r.turns, &r.running, &r.first, &r.open, &r.strand, &r.last, &r.cwd)
	if errors.Is(err, pgx.ErrNoRows) {
		err = &sessionstore.NotFoundError{ID: id}
	}
	return r, err
}

// finished returns the last segment and the number of turns of the finished part.
func (r *row) finished() (last, turns int64) {
	if r.open != 0 {
		return r.open - 1, r.first - 1
	}
	return r.last, r.turns
}

// store writes the columns that turns, leases and drafts change.
func (tx *transaction) store(r *row) error {
	return tx.exec(`
		UPDATE sessions SET generation = $3, turns = $4, running = $5, first = $6, open = $7,
			strand = $8, last = $9, updated = CASE WHEN NOT $10 THEN updated
				WHEN updated - `+now+` > $11 THEN `+now+` ELSE greatest(updated, `+now+`) END
		WHERE owner = $1 AND id = $2`, string(r.id), r.generation, r.turns, r.running, r.first,
		r.open, r.strand, r.last, r.active, rules.MaxAhead())
}

// lockAgent keeps other transactions from changing several sessions of an agent. It is called
// before any session is locked.
func (tx *transaction) lockAgent(agent int64) error {
	return tx.row("SELECT key FROM agents WHERE owner = $1 AND key = $2 FOR NO KEY UPDATE",
		agent).Scan(&agent)
}

// lockWithAgent locks a session's agent, and then the session.
func (tx *transaction) lockWithAgent(id sessionstore.ID) (*row, error) {
	before, err := tx.find(id, unlocked)
	if err == nil {
		err = tx.lockAgent(before.agent)
	}
	if err != nil {
		return nil, err
	}
	r, err := tx.find(id, forWrite)
	if err == nil && r.agent != before.agent {
		err = errChanged
	}
	return r, err
}

// update calls change with the session of l, which is locked, in a transaction.
func (s *Store) update(
	ctx context.Context, l sessionstore.Lease, change func(*transaction, *row) error,
) error {
	return s.write(ctx, func(tx *transaction) error {
		r, err := tx.find(l.ID, forWrite)
		if err == nil {
			err = rules.CheckLease(l, r.generation)
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
		r, err := tx.insert(agent, n, nil)
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
		return tx.row("SELECT key FROM agents WHERE owner = $1 AND kind = $2 AND profile = $3",
			a.Kind, a.Profile).Scan(&key)
	}
	if err = find(); errors.Is(err, pgx.ErrNoRows) {
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

// insert stores a session without a history. It was active at a time, or now if that is nil. If it
// has a state key the caller has locked the agent. It returns ErrExists if there is a session with
// the id; the caller rolls back.
func (tx *transaction) insert(
	agent int64, n sessionstore.NewSession, updated *int64,
) (*row, error) {
	r := &row{id: n.ID, agent: agent, cwd: n.Keys.Roots.Cwd().String(), running: []int64{}}
	args := append([]any{string(n.ID)}, keyColumns(n.Keys)...)
	args = append(args, agent, sessionstore.CleanTitle(n.Title), updated)
	err := tx.row(`
		INSERT INTO sessions (owner, id, cwd, dirs, real_cwd, real_dirs, agent, title, created, updated,
			generation, born, strand)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, `+now+`), coalesce($9, `+now+`), g, g, g
		FROM nextval('generations') AS g
		ON CONFLICT (owner, id) DO NOTHING RETURNING generation`, args...).Scan(&r.generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, sessionstore.ErrExists
	}
	if err != nil {
		return nil, err
	}
	r.strand = r.generation
	if len(n.State) > 0 || n.StateKey != "" {
		err = tx.saveState(r, n.State, n.StateKey)
	}
	return r, err
}

// keyColumns returns the columns cwd, dirs, real_cwd and real_dirs.
func keyColumns(k sessionstore.Keys) []any {
	p := rules.PathsOf(k)
	return []any{p.Cwd, p.Dirs, p.RealCwd, p.RealDirs}
}

// recordColumns are the columns that scanRecord reads, of recordTables. joinAgents joins
// the agent of s.
const (
	recordColumns = `s.id, kind, profile, cwd, dirs, real_cwd, real_dirs, title, created, updated,
		generation, turns, archived, renamed, meta, listed`
	recordTables = "sessions s " + joinAgents
	joinAgents   = "JOIN agents a ON a.owner = s.owner AND a.key = s.agent"
)

// scanRecord reads a session, and further columns.
func scanRecord(row pgx.Row, more ...any) (r sessionstore.Session, err error) {
	var (
		p rules.Paths
		c rules.Columns
	)
	err = row.Scan(append([]any{(*string)(&r.ID), &r.Agent.Kind, &r.Agent.Profile, &p.Cwd, &p.Dirs,
		&p.RealCwd, &p.RealDirs, &r.Title, &c.Created, &c.Updated, &r.Generation, &r.Turns,
		&r.Archived, &r.Renamed, &c.Meta, &c.Listed}, more...)...)
	if err == nil {
		r.Keys, err = p.Keys()
	}
	c.Fill(&r)
	return r, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (got sessionstore.Session, err error) {
	notFound := &sessionstore.NotFoundError{ID: id}
	if id.Validate() != nil {
		return got, notFound
	}
	err = s.read(ctx, func(tx *transaction) (err error) {
		var state, stateKey []byte
		got, err = scanRecord(tx.row("SELECT "+recordColumns+", state, state_key FROM "+recordTables+
			" WHERE s.owner = $1 AND s.id = $2", string(id)), &state, &stateKey)
		got.State, got.StateKey = state, string(stateKey)
		if errors.Is(err, pgx.ErrNoRows) {
			err = notFound
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
		var r *row
		if a.State != nil {
			r, err = tx.lockWithAgent(id)
		} else {
			r, err = tx.find(id, forWrite)
		}
		if err == nil && a.Held != 0 {
			err = rules.CheckLease(sessionstore.Lease{ID: id, Generation: a.Held}, r.generation)
		}
		if err != nil {
			return err
		}
		if a.Held == 0 || history != nil {
			r.interruptTurns()
		}
		cwd, err := workspace.ParseDir(r.cwd)
		if err == nil {
			err = tx.setKeys(r, a.Keys.WithCwd(cwd))
		}
		if err == nil && a.State != nil {
			err = tx.saveState(r, a.State, a.StateKey)
		}
		if err == nil && history != nil {
			err = history.appendTo(tx, r)
		}
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return tx.store(r)
	})
	return lease, err
}

// Move implements [sessionstore.Mover].
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

// exec changes columns of a session. The values are $3 and later.
func (tx *transaction) set(id sessionstore.ID, columns string, values ...any) error {
	return tx.exec("UPDATE sessions SET "+columns+" WHERE owner = $1 AND id = $2",
		append([]any{string(id)}, values...)...)
}

// setKeys stores new roots and a new generation, which it sets in r.
func (tx *transaction) setKeys(r *row, k sessionstore.Keys) error {
	return tx.row(`
		UPDATE sessions SET cwd = $3, dirs = $4, real_cwd = $5, real_dirs = $6,
			generation = nextval('generations')
		WHERE owner = $1 AND id = $2 RETURNING generation`,
		append([]any{string(r.id)}, keyColumns(k)...)...).Scan(&r.generation)
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
	title, renamed := rules.Rename(title)
	return s.label(ctx, id, "title = $3, renamed = $4", title, renamed)
}

// Archive implements [sessionstore.Archiver].
func (s *Store) Archive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived = true")
}

// Unarchive implements [sessionstore.Archiver].
func (s *Store) Unarchive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived = false")
}

// label changes columns of a session that must exist.
func (s *Store) label(
	ctx context.Context, id sessionstore.ID, columns string, values ...any,
) error {
	return s.write(ctx, func(tx *transaction) error {
		if _, err := tx.find(id, forWrite); err != nil {
			return err
		}
		return tx.set(id, columns, values...)
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	return s.write(ctx, func(tx *transaction) error {
		r, err := tx.lockWithAgent(l.ID)
		if err == nil {
			err = rules.CheckLease(l, r.generation)
		}
		if err != nil {
			return err
		}
		return tx.saveState(r, state, key)
	})
}

// saveState stores the state of a session, which it removes if empty, and its state key. The caller
// has locked the agent.
func (tx *transaction) saveState(r *row, state []byte, key string) error {
	if err := tx.setStateKey(r, key); err != nil {
		return err
	}
	if len(state) == 0 {
		state = nil
	}
	return tx.set(r.id, "state = $3", state)
}

// Fork implements [sessionstore.Store].
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.write(ctx, func(tx *transaction) error {
		if _, err := tx.find(source, unlocked); err != nil {
			return err
		}
		agent, err := tx.agentKey(n.Agent, n.StateKey != "")
		if err != nil {
			return err
		}
		from, err := tx.find(source, shared)
		if err != nil {
			return err
		}
		var (
			title string
			state []byte
		)
		err = tx.row("SELECT title, state FROM sessions WHERE owner = $1 AND id = $2",
			string(source)).Scan(&title, &state)
		if err != nil {
			return err
		}
		n := rules.Forked(n, title, state, from.agent == agent)
		r, err := tx.insert(agent, n, nil)
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
		SELECT owner, $3, seq, body FROM segments WHERE owner = $1 AND strand = $2 AND seq <= $4`,
		from.strand, to.strand, to.last)
	if err == nil && from.agent == to.agent {
		err = tx.exec(`
			INSERT INTO states (owner, id, kind, body)
			SELECT owner, $3, kind, body FROM states WHERE owner = $1 AND id = $2`,
			string(from.id), string(to.id))
		if err == nil {
			err = tx.inheritReadings(from, to)
		}
	}
	if err == nil {
		err = tx.store(to)
	}
	if err == nil { // now, so that what follows begins another passage
		_, err = tx.index(to)
	}
	return err
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
	return err
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
// The caller has locked the agent.
func (tx *transaction) deleteSession(r *row) error {
	one, err := tx.oneStanding("id = $2", string(r.id))
	if err == nil && one.name != "" {
		err = tx.addTombstone(r.agent, one.name)
	}
	if err != nil {
		return err
	}
	return tx.deleteRows(r.id, r.strand)
}

// deleteRows deletes a session, its history and its drafts.
func (tx *transaction) deleteRows(id sessionstore.ID, strand int64) error {
	err := tx.exec("DELETE FROM sessions WHERE owner = $1 AND id = $2", string(id))
	if err == nil {
		err = tx.deleteDrafts("id = $2", string(id))
	}
	if err == nil {
		err = tx.exec("DELETE FROM segments WHERE owner = $1 AND strand = $2", strand)
	}
	return err
}

// pruneCondition matches the sessions to prune.
const pruneCondition = "owner = $1 AND " +
	"(updated < $3 OR updated < $2 AND turns = 0 AND last = 0 AND NOT imported)"

// Prune implements [sessionstore.Pruner].
func (s *Store) Prune(ctx context.Context, q sessionstore.PruneQuery) (n int, err error) {
	unused, all := rules.Bounds(q)
	var ids []string
	err = s.read(ctx, func(tx *transaction) error {
		rows, err := tx.query("SELECT id FROM sessions WHERE "+pruneCondition, unused, all)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil || q.DryRun {
		return len(ids), err
	}
	for _, id := range ids {
		deleted := false
		err := s.write(ctx, func(tx *transaction) error {
			r, err := tx.lockWithAgent(sessionstore.ID(id))
			if err != nil {
				return err
			}
			err = tx.row("SELECT count(*) = 1 FROM sessions WHERE "+pruneCondition+" AND id = $4",
				unused, all, id).Scan(&deleted)
			if err != nil || !deleted {
				return err
			}
			return tx.deleteSession(r)
		})
		switch {
		case errors.As(err, new(*sessionstore.NotFoundError)):
		case err != nil:
			return n, err
		case deleted:
			n++
		}
	}
	return n, nil
}
