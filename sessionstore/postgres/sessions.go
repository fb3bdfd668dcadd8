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
func (s *Store) find(
	ctx context.Context, tx pgx.Tx, id sessionstore.ID, lock string,
) (*row, error) {
	if id.Validate() != nil {
		return nil, &sessionstore.NotFoundError{ID: id}
	}
	r := &row{id: id}
	err := tx.QueryRow(ctx, `
		SELECT agent, generation, turns, running, first, open, strand, last, cwd
		FROM sessions WHERE owner = $1 AND id = $2`+lock, s.owner, string(id)).
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
func (s *Store) store(ctx context.Context, tx pgx.Tx, r *row) error {
	_, err := tx.Exec(ctx, `
		UPDATE sessions SET generation = $3, turns = $4, running = $5, first = $6, open = $7,
			strand = $8, last = $9, updated = CASE WHEN NOT $10 THEN updated
				WHEN updated - `+now+` > $11 THEN `+now+` ELSE greatest(updated, `+now+`) END
		WHERE owner = $1 AND id = $2`, s.owner, string(r.id), r.generation, r.turns, r.running, r.first,
		r.open, r.strand, r.last, r.active, rules.MaxAhead())
	return err
}

// lockAgent keeps other transactions from changing several sessions of an agent. It is called
// before any session is locked.
func (s *Store) lockAgent(ctx context.Context, tx pgx.Tx, agent int64) error {
	return tx.QueryRow(ctx,
		"SELECT key FROM agents WHERE owner = $1 AND key = $2 FOR NO KEY UPDATE",
		s.owner, agent).Scan(&agent)
}

// lockWithAgent locks a session's agent, and then the session.
func (s *Store) lockWithAgent(ctx context.Context, tx pgx.Tx, id sessionstore.ID) (*row, error) {
	before, err := s.find(ctx, tx, id, unlocked)
	if err == nil {
		err = s.lockAgent(ctx, tx, before.agent)
	}
	if err != nil {
		return nil, err
	}
	r, err := s.find(ctx, tx, id, forWrite)
	if err == nil && r.agent != before.agent {
		err = errChanged
	}
	return r, err
}

// update calls change with the session of l, which is locked, in a transaction.
func (s *Store) update(
	ctx context.Context, l sessionstore.Lease, change func(pgx.Tx, *row) error,
) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		r, err := s.find(ctx, tx, l.ID, forWrite)
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
	err = s.write(ctx, func(tx pgx.Tx) error {
		agent, err := s.agentKey(ctx, tx, n.Agent, n.StateKey != "")
		if err != nil {
			return err
		}
		r, err := s.insert(ctx, tx, agent, n, nil)
		if err == nil {
			lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		}
		return err
	})
	return lease, err
}

// agentKey returns the key of an agent, which it adds if it is new, and locks it if asked to.
func (s *Store) agentKey(
	ctx context.Context, tx pgx.Tx, a sessionstore.Agent, lock bool,
) (key int64, err error) {
	find := func() error {
		return tx.QueryRow(ctx, "SELECT key FROM agents WHERE owner = $1 AND kind = $2 AND profile = $3",
			s.owner, a.Kind, a.Profile).Scan(&key)
	}
	if err = find(); errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, "INSERT INTO agents (owner, kind, profile) VALUES ($1, $2, $3) "+
			"ON CONFLICT (owner, kind, profile) DO NOTHING", s.owner, a.Kind, a.Profile)
		if err == nil {
			err = find()
		}
	}
	if err == nil && lock {
		err = s.lockAgent(ctx, tx, key)
	}
	return key, err
}

// insert stores a session without a history. It was active at a time, or now if that is nil. If it
// has a state key the caller has locked the agent. It returns ErrExists if there is a session with
// the id; the caller rolls back.
func (s *Store) insert(
	ctx context.Context, tx pgx.Tx, agent int64, n sessionstore.NewSession, updated *int64,
) (*row, error) {
	r := &row{id: n.ID, agent: agent, cwd: n.Keys.Roots.Cwd().String(), running: []int64{}}
	args := append([]any{s.owner, string(n.ID)}, keyColumns(n.Keys)...)
	args = append(args, agent, sessionstore.CleanTitle(n.Title), updated)
	err := tx.QueryRow(ctx, `
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
		err = s.saveState(ctx, tx, r, n.State, n.StateKey)
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
	err = s.read(ctx, func(tx pgx.Tx) (err error) {
		var state, stateKey []byte
		got, err = scanRecord(tx.QueryRow(ctx,
			"SELECT "+recordColumns+", state, state_key FROM "+recordTables+
				" WHERE s.owner = $1 AND s.id = $2", s.owner, string(id)), &state, &stateKey)
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
	err = s.write(ctx, func(tx pgx.Tx) error {
		var r *row
		if a.State != nil {
			r, err = s.lockWithAgent(ctx, tx, id)
		} else {
			r, err = s.find(ctx, tx, id, forWrite)
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
			err = s.setKeys(ctx, tx, r, a.Keys.WithCwd(cwd))
		}
		if err == nil && a.State != nil {
			err = s.saveState(ctx, tx, r, a.State, a.StateKey)
		}
		if err == nil && history != nil {
			err = history.replaceHistory(ctx, tx, r)
		}
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return s.store(ctx, tx, r)
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
	err = s.update(ctx, l, func(tx pgx.Tx, r *row) error {
		err := s.setKeys(ctx, tx, r, k)
		moved = sessionstore.Lease{ID: l.ID, Generation: r.generation}
		if err == nil {
			err = s.exec(ctx, tx, r.id, "listed = 0")
		}
		return err
	})
	if err != nil {
		return sessionstore.Lease{}, err
	}
	return moved, nil
}

// exec changes columns of a session. The values are $3 and later.
func (s *Store) exec(
	ctx context.Context, tx pgx.Tx, id sessionstore.ID, columns string, values ...any,
) error {
	_, err := tx.Exec(ctx, "UPDATE sessions SET "+columns+" WHERE owner = $1 AND id = $2",
		append([]any{s.owner, string(id)}, values...)...)
	return err
}

// setKeys stores new roots and a new generation, which it sets in r.
func (s *Store) setKeys(ctx context.Context, tx pgx.Tx, r *row, k sessionstore.Keys) error {
	return tx.QueryRow(ctx, `
		UPDATE sessions SET cwd = $3, dirs = $4, real_cwd = $5, real_dirs = $6,
			generation = nextval('generations')
		WHERE owner = $1 AND id = $2 RETURNING generation`,
		append([]any{s.owner, string(r.id)}, keyColumns(k)...)...).Scan(&r.generation)
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.update(ctx, l, func(tx pgx.Tx, r *row) error {
		return s.exec(ctx, tx, r.id, "title = CASE WHEN renamed THEN title ELSE $3 END",
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
	return s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.find(ctx, tx, id, forWrite); err != nil {
			return err
		}
		return s.exec(ctx, tx, id, columns, values...)
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		r, err := s.lockWithAgent(ctx, tx, l.ID)
		if err == nil {
			err = rules.CheckLease(l, r.generation)
		}
		if err != nil {
			return err
		}
		return s.saveState(ctx, tx, r, state, key)
	})
}

// saveState stores the state of a session, which it removes if empty, and its state key. The caller
// has locked the agent.
func (s *Store) saveState(ctx context.Context, tx pgx.Tx, r *row, state []byte, key string) error {
	if err := s.setStateKey(ctx, tx, r, key); err != nil {
		return err
	}
	if len(state) == 0 {
		state = nil
	}
	return s.exec(ctx, tx, r.id, "state = $3", state)
}

// Fork implements [sessionstore.Store].
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := s.find(ctx, tx, source, unlocked); err != nil {
			return err
		}
		agent, err := s.agentKey(ctx, tx, n.Agent, n.StateKey != "")
		if err != nil {
			return err
		}
		from, err := s.find(ctx, tx, source, shared)
		if err != nil {
			return err
		}
		var (
			title string
			state []byte
		)
		err = tx.QueryRow(ctx, "SELECT title, state FROM sessions WHERE owner = $1 AND id = $2",
			s.owner, string(source)).Scan(&title, &state)
		if err != nil {
			return err
		}
		n := rules.Forked(n, title, state, from.agent == agent)
		r, err := s.insert(ctx, tx, agent, n, nil)
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		return s.copyHistory(ctx, tx, from, r)
	})
	return lease, err
}

// copyHistory gives a new session the finished part of another's history, and its states and
// readings if both belong to the same agent.
func (s *Store) copyHistory(ctx context.Context, tx pgx.Tx, from, to *row) error {
	to.last, to.turns = from.finished()
	_, err := tx.Exec(ctx, `
		INSERT INTO segments (owner, strand, seq, body)
		SELECT owner, $3, seq, body FROM segments WHERE owner = $1 AND strand = $2 AND seq <= $4`,
		s.owner, from.strand, to.strand, to.last)
	if err == nil && from.agent == to.agent {
		_, err = tx.Exec(ctx, `
			INSERT INTO states (owner, id, kind, body)
			SELECT owner, $3, kind, body FROM states WHERE owner = $1 AND id = $2`,
			s.owner, string(from.id), string(to.id))
		if err == nil {
			err = s.inheritReadings(ctx, tx, from, to)
		}
	}
	if err == nil {
		err = s.store(ctx, tx, to)
	}
	if err == nil { // now, so that what follows begins another passage
		_, err = s.index(ctx, tx, to)
	}
	return err
}

// Delete implements [sessionstore.Store].
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	err := s.write(ctx, func(tx pgx.Tx) error {
		r, err := s.lockWithAgent(ctx, tx, id)
		if err != nil {
			return err
		}
		return s.deleteSession(ctx, tx, r)
	})
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return nil
	}
	return err
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
// The caller has locked the agent.
func (s *Store) deleteSession(ctx context.Context, tx pgx.Tx, r *row) error {
	one, err := s.oneStanding(ctx, tx, "id = $2", string(r.id))
	if err == nil && one.name != "" {
		err = s.addTombstone(ctx, tx, r.agent, one.name)
	}
	if err != nil {
		return err
	}
	return s.deleteRows(ctx, tx, r.id, r.strand)
}

// deleteRows deletes a session, its history and its drafts.
func (s *Store) deleteRows(ctx context.Context, tx pgx.Tx, id sessionstore.ID, strand int64) error {
	_, err := tx.Exec(ctx, "DELETE FROM sessions WHERE owner = $1 AND id = $2", s.owner, string(id))
	if err == nil {
		err = s.deleteDrafts(ctx, tx, "id = $2", string(id))
	}
	if err == nil {
		_, err = tx.Exec(ctx, "DELETE FROM segments WHERE owner = $1 AND strand = $2", s.owner, strand)
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
	err = s.read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "SELECT id FROM sessions WHERE "+pruneCondition, s.owner, unused, all)
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
		err := s.write(ctx, func(tx pgx.Tx) error {
			r, err := s.lockWithAgent(ctx, tx, sessionstore.ID(id))
			if err != nil {
				return err
			}
			err = tx.QueryRow(ctx, "SELECT count(*) = 1 FROM sessions WHERE "+pruneCondition+" AND id = $4",
				s.owner, unused, all, id).Scan(&deleted)
			if err != nil || !deleted {
				return err
			}
			return s.deleteSession(ctx, tx, r)
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
