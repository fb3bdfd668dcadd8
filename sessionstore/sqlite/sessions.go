package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is the part of a session's row that writes need.
type row struct {
	key, generation, turns int64
	open                   int64 // the first segment of the running turns, 0 between turns
	strand                 int64 // where its own segments are
	last                   int64 // the number of its last segment
	updated                int64
	cwd                    string
}

// find returns the row of a session, or a NotFoundError.
func (o owner) find(tx *transaction, id sessionstore.ID) (r row, err error) {
	err = tx.row(`
		SELECT key, generation, turns, open, strand, last, updated, cwd FROM sessions WHERE id = ?`,
		string(o.storedID(id))).
		Scan(&r.key, &r.generation, &r.turns, &r.open, &r.strand, &r.last, &r.updated, &r.cwd)
	if errors.Is(err, sql.ErrNoRows) {
		err = &sessionstore.NotFoundError{ID: id}
	}
	return r, err
}

// findLeased finds the session of l, which must be its newest lease.
func (o owner) findLeased(tx *transaction, l sessionstore.Lease) (row, error) {
	r, err := o.find(tx, l.ID)
	if err == nil {
		err = rules.CheckLease(l, r.generation)
	}
	return r, err
}

// store writes the columns of the row that turns and segments change.
func (r row) store(tx *transaction) error {
	return tx.exec(
		"UPDATE sessions SET turns = ?, open = ?, strand = ?, last = ?, updated = ? WHERE key = ?",
		r.turns, r.open, r.strand, r.last, r.updated, r.key)
}

// finishedPart is the extent of a session's history up to its last finished turn.
type finishedPart struct {
	last  int64 // segment
	turns int64
}

// finished returns the finished part of the session's history.
func (r row) finished(tx *transaction) (finishedPart, error) {
	if r.open == 0 {
		return finishedPart{last: r.last, turns: r.turns}, nil
	}
	first, err := r.firstRunning(tx)
	return finishedPart{last: r.lastFinished(), turns: first - 1}, err
}

// lastFinished returns the last segment of the finished part.
func (r row) lastFinished() int64 {
	if r.open != 0 {
		return r.open - 1
	}
	return r.last
}

// update calls change with the session of l, in one transaction.
func (s *Store) update(
	ctx context.Context, l sessionstore.Lease, change func(*transaction, row) error,
) error {
	return s.write(ctx, func(tx *transaction) error {
		r, err := s.owner.findLeased(tx, l)
		if err != nil {
			return err
		}
		return change(tx, r)
	})
}

// Create implements [sessionstore.Store].
func (s *Store) Create(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if err := n.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(tx *transaction) (err error) {
		lease, _, err = s.insert(tx, n, s.clock())
		return err
	})
	return lease, err
}

// insert stores a session without a history and returns its first lease and its key. It returns
// ErrExists if there is a session with the id; the caller rolls back.
func (s *Store) insert(
	tx *transaction, n sessionstore.NewSession, now int64,
) (lease sessionstore.Lease, key int64, err error) {
	agent, err := s.owner.agentKey(tx, n.Agent)
	if err != nil {
		return lease, 0, err
	}
	lease.ID = n.ID
	lease.Generation, key, err = s.insertRow(tx, agent, n, now, rules.Unused)
	if err == nil && (len(n.State) > 0 || n.StateKey != "") {
		err = s.saveState(tx, key, n.State, n.StateKey)
	}
	return lease, key, err
}

// insertRow is insert for the row in the table of sessions only. A generation is never used twice,
// so it numbers the strand too.
func (s *Store) insertRow(
	tx *transaction, agent int64, n sessionstore.NewSession, now int64, listing rules.Listing,
) (generation, key int64, err error) {
	if generation, err = nextGeneration(tx); err != nil {
		return 0, 0, err
	}
	values := append([]any{string(s.owner.storedID(n.ID)), agent}, keyValues(n.Keys)...)
	values = append(values, sessionstore.CleanTitle(n.Title), now, now, generation, generation,
		int(listing))
	result, err := tx.ExecContext(tx.ctx, `
		INSERT INTO sessions (id, agent, cwd, dirs, real_cwd, real_dirs,
			cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
			title, created, updated, generation, strand, listing, turns, open, last)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)
		ON CONFLICT (id) DO NOTHING`, values...)
	if err != nil {
		return 0, 0, err
	}
	if n, err := result.RowsAffected(); n == 0 {
		return 0, 0, cmp.Or(err, sessionstore.ErrExists)
	}
	key, err = result.LastInsertId()
	return generation, key, err
}

// agentKey returns the key of an agent, and adds a new agent.
func (o owner) agentKey(tx *transaction, a sessionstore.Agent) (key int64, err error) {
	a = o.storedAgent(a)
	find := func() error {
		return tx.row("SELECT key FROM agents WHERE kind = ? AND profile = ?",
			a.Kind, a.Profile).Scan(&key)
	}
	if err = find(); errors.Is(err, sql.ErrNoRows) {
		err = tx.exec("INSERT INTO agents (kind, profile) VALUES (?, ?)", a.Kind, a.Profile)
		if err == nil {
			err = find()
		}
	}
	return key, err
}

// nextGeneration returns a number that no lease and no strand has had.
func nextGeneration(tx *transaction) (generation int64, err error) {
	err = tx.row(
		"UPDATE meta SET generations = generations + 1 RETURNING generations").Scan(&generation)
	return generation, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (got sessionstore.Session, err error) {
	err = s.read(ctx, func(tx *transaction) (err error) {
		var key int64
		record := tx.row("SELECT "+recordColumns+" FROM "+recordTables+" WHERE id = ?",
			string(s.owner.storedID(id)))
		key, _, got, err = scanRecord(record, parsedKeys{})
		got.ID = id
		if err == nil {
			err = tx.row(`
				SELECT kind, profile, runtime_states.body, coalesce(runtime_keys.name, '')
				FROM sessions JOIN agents ON agents.key = sessions.agent
				LEFT JOIN runtime_states ON runtime_states.session = sessions.key
				LEFT JOIN runtime_keys ON runtime_keys.session = sessions.key
				WHERE sessions.key = ?`, key).
				Scan(&got.Agent.Kind, &got.Agent.Profile, &got.State, &got.StateKey)
			_, got.Agent.Kind = split(got.Agent.Kind)
		}
		if errors.Is(err, sql.ErrNoRows) {
			err = &sessionstore.NotFoundError{ID: id}
		}
		return err
	})
	return got, err
}

// recordColumns are the columns that scanRecord reads, of recordTables.
const (
	recordColumns = "key, agent, id, cwd, dirs, real_cwd, real_dirs, " +
		"title, created, updated, generation, turns, " +
		"coalesce(archived, 0), coalesce(renamed, 0), coalesce(meta, ''), " +
		"coalesce((SELECT listed FROM runtime_keys WHERE session = key), 0)"
	recordTables = "sessions LEFT JOIN labels ON labels.session = sessions.key"
)

// scanRecord reads a session without its agent and state from a [sql.Row] or [sql.Rows]. It also
// returns the keys of the session and of its agent.
func scanRecord(
	row interface{ Scan(...any) error }, parsed parsedKeys,
) (key, agent int64, r sessionstore.Session, err error) {
	var (
		texts keyTexts
		c     rules.Columns
	)
	err = row.Scan(&key, &agent, (*string)(&r.ID), &texts[0], &texts[1], &texts[2], &texts[3],
		&r.Title, &c.Created, &c.Updated, &r.Generation, &r.Turns, &r.Archived, &r.Renamed, &c.Meta,
		&c.Listed)
	if err != nil {
		return 0, 0, r, err
	}
	r.Keys, err = parsed.parse(texts)
	c.Fill(&r)
	return key, agent, r, err
}

// Activate implements [sessionstore.Store].
func (s *Store) Activate(
	ctx context.Context, id sessionstore.ID, a sessionstore.Activation,
) (sessionstore.Lease, error) {
	if err := a.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	history, err := s.draftOf(id, a.History)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err = s.write(ctx, func(tx *transaction) error {
		r, err := s.owner.find(tx, id)
		if err == nil && a.Held != 0 {
			err = rules.CheckLease(sessionstore.Lease{ID: id, Generation: a.Held}, r.generation)
		}
		if err != nil {
			return err
		}
		if a.Held == 0 || history != nil {
			if err := s.interruptTurns(tx, &r); err != nil {
				return err
			}
		}
		cwd, err := workspace.ParseDir(r.cwd)
		if err != nil {
			return &damageError{err}
		}
		if err := setKeys(tx, &r, a.Keys.WithCwd(cwd)); err != nil {
			return err
		}
		if a.State != nil {
			if err := s.saveState(tx, r.key, a.State, a.StateKey); err != nil {
				return err
			}
		}
		if history != nil {
			if err := history.appendTo(tx, &r); err != nil {
				return err
			}
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return r.store(tx)
	})
	s.eraseSoon()
	return lease, err
}

// Move implements [sessionstore.Mover].
func (s *Store) Move(
	ctx context.Context, l sessionstore.Lease, k sessionstore.Keys,
) (sessionstore.Lease, error) {
	if err := k.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var moved sessionstore.Lease
	err := s.update(ctx, l, func(tx *transaction, r row) error {
		if err := setKeys(tx, &r, k); err != nil {
			return err
		}
		moved = sessionstore.Lease{ID: l.ID, Generation: r.generation}
		return tx.exec("UPDATE runtime_keys SET listed = 0 WHERE session = ?", r.key)
	})
	if err != nil {
		return sessionstore.Lease{}, err
	}
	return moved, nil
}

// setKeys stores new roots and a new generation, which it sets in r.
func setKeys(tx *transaction, r *row, k sessionstore.Keys) (err error) {
	if r.generation, err = nextGeneration(tx); err != nil {
		return err
	}
	values := append(keyValues(k), r.generation, r.key)
	return tx.exec(`
		UPDATE sessions SET cwd = ?, dirs = ?, real_cwd = ?, real_dirs = ?,
			cwd_hash = ?, dirs_hash = ?, real_cwd_hash = ?, real_dirs_hash = ?, generation = ?
		WHERE key = ?`, values...)
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.update(ctx, l, func(tx *transaction, r row) error {
		return tx.exec("UPDATE sessions SET title = ?1 WHERE key = ?2 "+
			"AND NOT EXISTS (SELECT 1 FROM labels WHERE session = ?2 AND renamed)",
			sessionstore.CleanTitle(title), r.key)
	})
}

// Rename implements [sessionstore.Store].
func (s *Store) Rename(ctx context.Context, id sessionstore.ID, title string) error {
	title, renamed := rules.Rename(title)
	return s.label(ctx, id, "renamed", renamed, func(tx *transaction, key int64) error {
		return tx.exec("UPDATE sessions SET title = ? WHERE key = ?", title, key)
	})
}

// Archive implements [sessionstore.Archiver].
func (s *Store) Archive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived", 1, nil)
}

// Unarchive implements [sessionstore.Archiver].
func (s *Store) Unarchive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, "archived", 0, nil)
}

// label sets a column of a session's labels. In the same transaction it calls also, unless that is
// nil.
func (s *Store) label(
	ctx context.Context, id sessionstore.ID, column string, value any,
	also func(*transaction, int64) error,
) error {
	return s.write(ctx, func(tx *transaction) error {
		r, err := s.owner.find(tx, id)
		if err != nil {
			return err
		}
		if err := setLabel(tx, r.key, column, value); err != nil || also == nil {
			return err
		}
		return also(tx, r.key)
	})
}

func setLabel(tx *transaction, key int64, column string, value any) error {
	return tx.exec("INSERT INTO labels (session, "+column+") VALUES (?, ?) "+
		"ON CONFLICT (session) DO UPDATE SET "+column+" = excluded."+column, key, value)
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	return s.update(ctx, l, func(tx *transaction, r row) error {
		return s.saveState(tx, r.key, state, key)
	})
}

// saveState stores the state of a session, which it removes if empty, and its state key.
func (s *Store) saveState(tx *transaction, session int64, state []byte, stateKey string) error {
	if err := s.setStateKey(tx, session, stateKey); err != nil {
		return err
	}
	if len(state) == 0 {
		return tx.exec("DELETE FROM runtime_states WHERE session = ?", session)
	}
	return tx.exec(`
		INSERT INTO runtime_states (session, body) VALUES (?, ?)
		ON CONFLICT (session) DO UPDATE SET body = excluded.body`, session, state)
}

// check returns nil if the lease is the newest.
func (s *Store) check(ctx context.Context, l sessionstore.Lease) error {
	return s.read(ctx, func(tx *transaction) error {
		_, err := s.owner.findLeased(tx, l)
		return err
	})
}

// Fork implements [sessionstore.Store]. The history is shared, not copied, so the time does not
// depend on its length.
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.NewSession,
) (sessionstore.Lease, error) {
	if err := n.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(tx *transaction) error {
		from, err := s.owner.find(tx, source)
		if err != nil {
			return err
		}
		n, err := s.withSourceDefaults(tx, n, from)
		if err != nil {
			return err
		}
		finished, err := from.finished(tx)
		if err != nil {
			return err
		}
		spans, err := from.spans(tx, finished.last)
		if err != nil {
			return err
		}
		var key int64
		if lease, key, err = s.insert(tx, n, s.clock()); err != nil {
			return err
		}
		return inherit(tx, key, from, spans, finished, s.clock())
	})
	return lease, err
}

// withSourceDefaults fills in what n lacks: the title of the source, and its state if both belong
// to the same agent.
func (s *Store) withSourceDefaults(
	tx *transaction, n sessionstore.NewSession, from row,
) (sessionstore.NewSession, error) {
	var (
		title     string
		state     []byte
		sameAgent bool
	)
	agent := s.owner.storedAgent(n.Agent)
	err := tx.row(`
		SELECT title, body, kind = ?1 AND profile = ?2 FROM sessions
		JOIN agents ON agents.key = sessions.agent
		LEFT JOIN runtime_states ON session = sessions.key WHERE sessions.key = ?3`,
		agent.Kind, agent.Profile, from.key).Scan(&title, &state, &sameAgent)
	return rules.Forked(n, title, state, sameAgent), err
}

// inherit gives the session with the given key the history and finished turns of its source, and
// its states and readings if both belong to the same agent.
func inherit(
	tx *transaction, key int64, from row, spans []span, finished finishedPart,
	now int64,
) error {
	for _, s := range spans {
		err := tx.exec("INSERT INTO inherits (session, last, strand) VALUES (?, ?, ?)",
			key, s.last, s.strand)
		if err != nil {
			return err
		}
	}
	err := tx.exec("UPDATE sessions SET turns = ?, last = ? WHERE key = ?",
		finished.turns, finished.last, key)
	if err != nil {
		return err
	}
	err = tx.exec(`
		INSERT INTO states (session, kind, body) SELECT ?1, kind, body FROM states
		WHERE session = ?2 AND (SELECT agent FROM sessions WHERE key = ?1) =
			(SELECT agent FROM sessions WHERE key = ?2)`, key, from.key)
	if err != nil {
		return err
	}
	return inheritReadings(tx, key, from.key, now)
}

// Delete implements [sessionstore.Store]. The history, and what deleted rows leave in the files, is
// erased afterwards.
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	err := s.write(ctx, func(tx *transaction) error {
		r, err := s.owner.find(tx, id)
		if err != nil {
			return err
		}
		return s.deleteSession(tx, r)
	})
	if errors.As(err, new(*sessionstore.NotFoundError)) {
		return nil
	}
	s.eraseSoon()
	return err
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
// The caller calls eraseSoon afterwards.
func (s *medium) deleteSession(tx *transaction, r row) error {
	if err := s.addTombstoneOf(tx, r.key); err != nil {
		return err
	}
	if err := tx.exec("PRAGMA secure_delete = FAST"); err != nil {
		return err
	}
	err := deleteRows(tx, r)
	if err == nil {
		err = overwriteLists(tx)
	}
	return errors.Join(err, tx.exec("PRAGMA secure_delete = ON"))
}

// deleteRows deletes a session and its drafts, and drops its history. It records that there is
// something to erase.
func deleteRows(tx *transaction, r row) error {
	if err := tx.exec("UPDATE meta SET deletes = deletes + 1"); err != nil {
		return err
	}
	spans, err := inheritedSpans(tx, r.key)
	if err != nil {
		return err
	}
	if err := deleteDrafts(tx, "session = ?", r.key); err != nil {
		return err
	}
	if err := tx.exec("DELETE FROM sessions WHERE key = ?", r.key); err != nil {
		return err
	}
	return dropSpans(tx, append(spans, span{strand: r.strand}))
}
