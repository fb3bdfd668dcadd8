package core

import (
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is a session's row, without what only lists and clients need.
type row struct {
	id           sessionstore.ID
	key, agent   int64
	generation   int64
	name         []byte // of its tombstone, nil if it has no state key
	strand       int64  // where its segments are
	cwd, realCwd string

	// These are written by [transaction.store].
	title             string
	created, updated  int64
	turns             int64
	running           []int64 // the numbers of the running turns
	first             int64   // the number of the first turn since open
	open              int64   // the first segment of the running turns, 0 between turns
	last              int64   // the number of its last segment
	complete, seen    int64   // how far its history is in passages
	archived, renamed bool
	imported          bool  // it came from its agent's list
	listed            int64 // see the schema
	meta              []byte
}

// changing are the columns of a row that [transaction.store] writes.
const changing = "title, created, updated, turns, running, first, open, last, complete, seen, " +
	"archived, renamed, imported, listed, meta"

// all returns the owner's rows that match a condition, whose arguments are $2 and later.
func (tx *transaction) all(condition string, args ...any) (found []*row) {
	tx.rows(func(rows Rows) {
		var (
			r       row
			running string
		)
		must(rows.Scan((*string)(&r.id), &r.key, &r.agent, &r.generation, &r.name,
			&r.strand, &r.cwd, &r.realCwd, &r.title, &r.created, &r.updated, &r.turns, &running,
			&r.first, &r.open, &r.last, &r.complete, &r.seen, &r.archived, &r.renamed,
			&r.imported, &r.listed, &r.meta))
		if err := json.Unmarshal([]byte(running), &r.running); err != nil {
			must(damaged(err))
		}
		found = append(found, &r)
	}, "SELECT id, key, agent, generation, name, strand, cwd, real_cwd, "+changing+
		" FROM sessions WHERE owner = $1 AND "+condition, args...)
	return found
}

// one returns the row that matches a condition, or nil.
func (tx *transaction) one(condition string, args ...any) *row {
	for _, r := range tx.all(condition, args...) {
		return r
	}
	return nil
}

// seek returns the row of a session, which it locks if asked to, or nil.
func (tx *transaction) seek(id sessionstore.ID, lock string) *row {
	if id.Validate() != nil {
		return nil
	}
	return tx.one("id = $2"+lock, string(id))
}

// mustFind is seek for a session that must exist.
func (tx *transaction) mustFind(id sessionstore.ID, lock string) *row {
	r := tx.seek(id, lock)
	if r == nil {
		must(&sessionstore.NotFoundError{ID: id})
	}
	return r
}

// forWrite returns the end of a query that locks its rows in order to write them.
func (tx *transaction) forWrite() string { return tx.db.Traits().ForWrite }

// finished returns the last segment and the number of turns of the finished part.
func (r *row) finished() (last, turns int64) {
	if r.open != 0 {
		return r.open - 1, r.first - 1
	}
	return r.last, r.turns
}

// store writes a row, which the transaction has locked.
func (tx *transaction) store(r *row) {
	list, args := placeholders([]any{r.title, r.created, r.updated, r.turns, jsonText(r.running),
		r.first, r.open, r.last, r.complete, r.seen, r.archived, r.renamed, r.imported,
		r.listed, append([]byte{}, r.meta...), int64(r.listing()), r.seen < r.last}, 3)
	tx.set(r.id, "("+changing+", listing, stale) = ("+list+")", args...)
}

// listing returns which lists show the session.
func (r *row) listing() listing {
	switch {
	case r.archived:
		return archivedList
	case r.isUnused():
		return unusedList
	}
	return ordinaryList
}

// set changes columns of a session. The values are $3 and later.
func (tx *transaction) set(id sessionstore.ID, columns string, values ...any) {
	tx.exec("UPDATE sessions SET "+columns+" WHERE owner = $1 AND id = $2",
		append([]any{string(id)}, values...)...)
}

// lockAgent keeps other transactions from changing several sessions of an agent. It is called
// before any session is locked.
func (tx *transaction) lockAgent(agent int64) {
	tx.row([]any{&agent}, "SELECT key FROM agents WHERE owner = $1 AND key = $2"+tx.forWrite(),
		agent)
}

// lockWithAgent locks a session's agent, and then the session. It returns nil for an unknown id.
func (tx *transaction) lockWithAgent(id sessionstore.ID) *row {
	before := tx.seek(id, "")
	if before == nil {
		return nil
	}
	tx.lockAgent(before.agent)
	r := tx.seek(id, tx.forWrite())
	if r != nil && r.agent != before.agent {
		must(ErrChanged)
	}
	return r
}

// mustHold ends the transaction unless r is the session of l, and l its newest lease.
func mustHold(l sessionstore.Lease, r *row) {
	switch {
	case r == nil:
		must(&sessionstore.NotFoundError{ID: l.ID})
	case l.Generation != r.generation:
		must(&sessionstore.FencedError{ID: l.ID, Held: l.Generation, Current: r.generation})
	}
}

// mustLock returns the session of l, which it locks.
func (tx *transaction) mustLock(l sessionstore.Lease) *row {
	r := tx.seek(l.ID, tx.forWrite())
	mustHold(l, r)
	return r
}

// Create implements [sessionstore.Store].
func (s *Store) Create(
	ctx context.Context, n sessionstore.Session,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		return tx.insert(tx.agentKey(n.Agent, n.StateKey != ""), n, tx.now()).lease()
	})
}

// agentKey returns the key of an agent, which it adds if it is new, and locks it if asked to.
func (tx *transaction) agentKey(a sessionstore.Agent, lock bool) (key int64) {
	find := func() bool {
		return tx.row([]any{&key}, "SELECT key FROM agents "+
			"WHERE owner = $1 AND kind = $2 AND profile = $3", a.Kind, a.Profile)
	}
	if !find() {
		tx.exec("INSERT INTO agents (owner, kind, profile) VALUES ($1, $2, $3) "+
			"ON CONFLICT (owner, kind, profile) DO NOTHING", a.Kind, a.Profile)
		find()
	}
	if lock {
		tx.lockAgent(key)
	}
	return key
}

// lease returns the newest lease of the session.
func (r *row) lease() sessionstore.Lease {
	return sessionstore.Lease{ID: r.id, Generation: r.generation}
}

// insert stores a session without a history, which was active at a time. If it has a state key the
// caller has locked the agent. It fails with ErrExists if there is a session with the id.
func (tx *transaction) insert(agent int64, n sessionstore.Session, updated int64) *row {
	generation := tx.next()
	r := &row{id: n.ID, agent: agent, key: generation, generation: generation, strand: generation,
		created: updated, updated: updated, title: sessionstore.CleanTitle(n.Title),
		cwd: n.Keys.Roots.Cwd().String(), realCwd: n.Keys.Real[0].String()}
	args := append([]any{string(n.ID)}, keyColumns(n.Keys)...)
	args = append(args, agent, r.title, updated, generation, []byte{}, int64(unusedList))
	if !tx.row([]any{new(int64)}, `
		INSERT INTO sessions (owner, id, cwd, dirs, real_cwd, real_dirs, read_only, cwd_hash,
			dirs_hash, real_cwd_hash, real_dirs_hash, agent, title, created, updated, key,
			generation, strand, meta, listing)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $15, $15,
			$16, $17)
		ON CONFLICT (owner, id) DO NOTHING RETURNING key`, args...) {
		must(sessionstore.ErrExists)
	}
	if n.StateKey != "" {
		tx.setStateKey(r, n.StateKey)
	}
	if len(n.State) > 0 {
		tx.addStates(r.key, []sessionstore.Update{{Raw: n.State}})
	}
	return r
}

// recordColumns are the columns of the sessions s that scanRecord reads. With a join of the agents
// PostgreSQL would use an index of lists while it has no statistics.
const recordColumns = `s.id, (SELECT kind FROM agents WHERE key = s.agent),
	(SELECT profile FROM agents WHERE key = s.agent), cwd, dirs, real_cwd, real_dirs,
	read_only, title, created, s.updated, generation, turns, archived, renamed, meta, listed`

// scanRecord reads a session, and further columns.
func scanRecord(rows Rows, parsed parsedKeys, more ...any) (s sessionstore.Session, err error) {
	var (
		texts            keyTexts
		created, updated int64
		listed           int64 // negative if the session is gone, 0 if it was not listed
		meta             []byte
	)
	err = rows.Scan(append([]any{(*string)(&s.ID), &s.Agent.Kind, &s.Agent.Profile, &texts[0],
		&texts[1], &texts[2], &texts[3], &texts[4], &s.Title, &created, &updated, &s.Generation,
		&s.Turns, &s.Archived, &s.Renamed, &meta, &listed}, more...)...)
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
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (one sessionstore.Session, err error) {
	if id.Validate() != nil {
		return one, &sessionstore.NotFoundError{ID: id}
	}
	return transact(ctx, s, Read, func(tx *transaction) (one sessionstore.Session) {
		tx.rows(func(rows Rows) {
			var state, stateKey []byte
			one = got(scanRecord(rows, parsedKeys{}, &state, &stateKey))
			one.State, one.StateKey = state, string(stateKey)
		}, "SELECT "+recordColumns+", body, state_key FROM sessions s"+
			" LEFT JOIN states st ON st.owner = s.owner AND st.session = s.key AND st.kind = ''"+
			" WHERE s.owner = $1 AND s.id = $2", string(id))
		if one.Generation == 0 {
			must(&sessionstore.NotFoundError{ID: id})
		}
		return one
	})
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
	defer s.purgeSoon() // another session may have been deleted
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		var r *row
		if a.State == nil {
			r = tx.mustFind(id, tx.forWrite())
		} else if r = tx.lockWithAgent(id); r == nil {
			must(&sessionstore.NotFoundError{ID: id})
		}
		if a.Held != 0 {
			mustHold(sessionstore.Lease{ID: id, Generation: a.Held}, r)
		}
		if a.Held == 0 || history != nil {
			r.interruptTurns(tx.now())
		}
		cwd, err := workspace.ParseDir(r.cwd)
		if err != nil {
			must(damaged(err))
		}
		tx.setKeys(r, a.Keys.WithCwd(cwd))
		if a.State != nil {
			tx.saveState(r, a.State, a.StateKey)
		}
		history.appendTo(tx, r)
		tx.store(r)
		return r.lease()
	})
}

// Move implements [sessionstore.Store].
func (s *Store) Move(
	ctx context.Context, l sessionstore.Lease, k sessionstore.Keys,
) (moved sessionstore.Lease, err error) {
	if err := k.Validate(); err != nil {
		return moved, err
	}
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		r := tx.mustLock(l)
		tx.setKeys(r, k)
		r.listed = 0
		tx.store(r)
		return r.lease()
	})
}

// setKeys stores new roots and a new generation, which it sets in r.
func (tx *transaction) setKeys(r *row, k sessionstore.Keys) {
	r.generation = tx.next()
	tx.set(r.id, `cwd = $3, dirs = $4, real_cwd = $5, real_dirs = $6, read_only = $7,
		cwd_hash = $8, dirs_hash = $9, real_cwd_hash = $10, real_dirs_hash = $11,
		generation = $12`,
		append(keyColumns(k), r.generation)...)
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.change(ctx, func(tx *transaction) {
		if r := tx.mustLock(l); !r.renamed {
			r.title = sessionstore.CleanTitle(title)
			tx.store(r)
		}
	})
}

// Rename implements [sessionstore.Store].
func (s *Store) Rename(ctx context.Context, id sessionstore.ID, title string) error {
	return s.label(ctx, id, func(r *row) {
		r.title, r.renamed = sessionstore.CleanTitle(title), title != ""
	})
}

// Archive implements [sessionstore.Store].
func (s *Store) Archive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, func(r *row) { r.archived = true })
}

// Unarchive implements [sessionstore.Store].
func (s *Store) Unarchive(ctx context.Context, id sessionstore.ID) error {
	return s.label(ctx, id, func(r *row) { r.archived = false })
}

// label changes what users see of a session.
func (s *Store) label(ctx context.Context, id sessionstore.ID, change func(*row)) error {
	return s.change(ctx, func(tx *transaction) {
		r := tx.mustFind(id, tx.forWrite())
		change(r)
		tx.store(r)
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(
	ctx context.Context, l sessionstore.Lease, state []byte, key string,
) error {
	defer s.purgeSoon() // another session may have been deleted
	return s.change(ctx, func(tx *transaction) {
		r := tx.lockWithAgent(l.ID)
		mustHold(l, r)
		tx.saveState(r, state, key)
	})
}

// saveState stores the state of a session, which it removes if empty, and its state key. The caller
// has locked the agent.
func (tx *transaction) saveState(r *row, state []byte, key string) {
	tx.setStateKey(r, key)
	if len(state) > 0 {
		tx.addStates(r.key, []sessionstore.Update{{Raw: state}})
	} else {
		tx.exec("DELETE FROM states WHERE owner = $1 AND session = $2 AND kind = ''", r.key)
	}
}

// Fork implements [sessionstore.Store].
func (s *Store) Fork(
	ctx context.Context, source sessionstore.ID, n sessionstore.Session,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		tx.mustFind(source, "")
		agent := tx.agentKey(n.Agent, n.StateKey != "")
		from := tx.mustFind(source, tx.forWrite())
		n := n
		if n.Title == "" {
			n.Title = from.title
		}
		if n.State == nil && from.agent == agent {
			tx.row([]any{&n.State}, "SELECT body FROM states "+
				"WHERE owner = $1 AND session = $2 AND kind = ''", from.key)
		}
		r := tx.insert(agent, n, tx.now())
		tx.copyHistory(from, r)
		return r.lease()
	})
}

// copyHistory gives a new session the finished part of another's history, and its states and
// readings if both belong to the same agent.
func (tx *transaction) copyHistory(from, to *row) {
	to.last, to.turns = from.finished()
	tx.exec(`
		INSERT INTO segments (owner, strand, seq, body)
		SELECT owner, CAST($3 AS bigint), seq, body FROM segments
		WHERE owner = $1 AND strand = $2 AND seq <= $4`, from.strand, to.strand, to.last)
	if from.agent == to.agent {
		tx.exec(`
			INSERT INTO states (owner, session, kind, body)
			SELECT owner, CAST($3 AS bigint), kind, body FROM states
			WHERE owner = $1 AND session = $2 AND kind <> ''`, from.key, to.key)
		tx.inheritReadings(from, to)
	}
	tx.store(to)
}

// Delete implements [sessionstore.Store].
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	defer s.purgeSoon()
	return s.change(ctx, func(tx *transaction) {
		if r := tx.lockWithAgent(id); r != nil {
			tx.deleteSession(r)
		}
	})
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
// The caller has locked the agent.
func (tx *transaction) deleteSession(r *row) {
	if r.name != nil {
		tx.addTombstone(r.agent, r.name)
	}
	tx.deleteRows(r)
}

// deleteRows deletes a session. Its history and its drafts are left to be purged.
func (tx *transaction) deleteRows(r *row) {
	tx.exec("DELETE FROM sessions WHERE owner = $1 AND id = $2", string(r.id))
	tx.exec("DELETE FROM states WHERE owner = $1 AND session = $2", r.key)
	tx.exec("UPDATE drafts SET started = 0, session = 0 "+
		"WHERE owner = $1 AND session = $2 AND started > 0", r.key)
	tx.exec("INSERT INTO drafts (owner, strand, session, started) VALUES ($1, $2, $3, 0)",
		r.strand, r.key)
}
