package core

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is a session's row. Methods change it only in memory; [transaction.store] writes it.
type row struct {
	id         sessionstore.ID
	key, agent int64

	// These can change.
	keys              keyTexts
	generation        int64
	strand            int64  // where its segments are
	stateKey          []byte // nil if it has none
	name              []byte // the tombstone of its state key, nil if it has none
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
	listed            int64 // when its agent listed it first, 0 if it did not
	gone              bool  // its agent listed it, and no longer does
	meta              []byte
}

// changing are the columns of a row that can change, and derived are those that follow from them.
const (
	changing = "cwd, dirs, real_cwd, real_dirs, read_only, generation, strand, state_key, name, " +
		"title, created, updated, turns, running, first, open, last, complete, seen, archived, " +
		"renamed, imported, listed, meta"
	derived = "cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash, listing, stale"
)

// values returns the values of the columns changing and derived.
func (r *row) values() []any {
	k, listed := r.keys, r.listed
	if r.gone {
		listed = -listed
	}
	return []any{k.cwd, k.dirs, k.realCwd, k.realDirs, k.readOnly, r.generation, r.strand,
		r.stateKey, r.name, r.title, r.created, r.updated, r.turns, jsonText(r.running), r.first,
		r.open, r.last, r.complete, r.seen, r.archived, r.renamed, r.imported, listed,
		append([]byte{}, r.meta...), hashOf(k.cwd), hashOf(k.dirs), hashOf(k.realCwd),
		hashOf(k.realDirs), int64(r.listing()), r.seen < r.last}
}

// all returns the owner's rows that match a condition, whose arguments are $2 and later.
func (tx *transaction) all(condition string, args ...any) (all []*row) {
	for rows := range tx.rows("SELECT id, key, agent, "+changing+
		" FROM sessions WHERE owner = $1 AND "+condition, args...) {
		var (
			r       row
			k       = &r.keys
			running string
			listed  int64
		)
		must(rows.Scan((*string)(&r.id), &r.key, &r.agent, &k.cwd, &k.dirs, &k.realCwd,
			&k.realDirs, &k.readOnly, &r.generation, &r.strand, &r.stateKey, &r.name, &r.title,
			&r.created, &r.updated, &r.turns, &running, &r.first, &r.open, &r.last, &r.complete,
			&r.seen, &r.archived, &r.renamed, &r.imported, &listed, &r.meta))
		r.listed, r.gone = unsigned(listed)
		if err := json.Unmarshal([]byte(running), &r.running); err != nil {
			must(damaged(err))
		}
		all = append(all, &r)
	}
	return all
}

// lockAll is all, and locks the rows.
func (tx *transaction) lockAll(condition string, args ...any) []*row {
	return tx.all(condition+tx.db.Traits().ForWrite, args...)
}

// find returns the row of a session, or nil.
func (tx *transaction) find(id sessionstore.ID) *row { return byID(id, tx.all) }

// lock returns the row of a session, which it locks, or nil.
func (tx *transaction) lock(id sessionstore.ID) *row { return byID(id, tx.lockAll) }

// byID returns the row of a session that a method finds, or nil.
func byID(id sessionstore.ID, all func(condition string, args ...any) []*row) *row {
	if id.Validate() != nil {
		return nil
	}
	return only(all("id = $2", string(id)))
}

// only returns the one row in a list, or nil.
func only(all []*row) *row {
	for _, r := range all {
		return r
	}
	return nil
}

// mustExist returns r, and ends the transaction if it is nil.
func mustExist(id sessionstore.ID, r *row) *row {
	if r == nil {
		must(&sessionstore.NotFoundError{ID: id})
	}
	return r
}

// mustHold returns r, and ends the transaction unless r is the session of l, and l its newest
// lease.
func mustHold(l sessionstore.Lease, r *row) *row {
	if mustExist(l.ID, r).generation != l.Generation {
		must(&sessionstore.FencedError{ID: l.ID, Held: l.Generation, Current: r.generation})
	}
	return r
}

// hold returns the row of a lease, which it locks.
func (tx *transaction) hold(l sessionstore.Lease) *row { return mustHold(l, tx.lock(l.ID)) }

// finished returns the last segment and the number of turns of the finished part.
func (r *row) finished() (last, turns int64) {
	if r.open != 0 {
		return r.open - 1, r.first - 1
	}
	return r.last, r.turns
}

// store writes a row, which the transaction has locked.
func (tx *transaction) store(r *row) {
	list, values := placeholders(r.values(), 3)
	tx.exec("UPDATE sessions SET ("+changing+", "+derived+") = ("+list+") "+
		"WHERE owner = $1 AND id = $2", append([]any{string(r.id)}, values...)...)
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

// lockWithAgent locks a session's agent, and then the session. It returns nil for an unknown id.
func (tx *transaction) lockWithAgent(id sessionstore.ID) *row {
	before := tx.find(id)
	if before == nil {
		return nil
	}
	tx.lockAgent(before.agent)
	r := tx.lock(id)
	if r != nil && r.agent != before.agent {
		must(ErrChanged)
	}
	return r
}

// Create implements [sessionstore.Store].
func (s *Store) Create(
	ctx context.Context, n sessionstore.Session,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	defer s.purgeSoon() // another session may have been deleted
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		r := tx.insert(tx.addAgent(n.Agent, n.StateKey != ""), n, tx.now())
		tx.saveState(r, n.State, n.StateKey)
		tx.store(r)
		return r.lease()
	})
}

// addAgent returns the key of an agent, which it adds if it is new, and locks if asked to.
func (tx *transaction) addAgent(a sessionstore.Agent, lock bool) int64 {
	key := tx.agent(a)
	if key == 0 {
		tx.exec("INSERT INTO agents (owner, kind, profile) VALUES ($1, $2, $3) "+
			"ON CONFLICT (owner, kind, profile) DO NOTHING", a.Kind, a.Profile)
		key = tx.agent(a)
	}
	if lock {
		tx.lockAgent(key)
	}
	return key
}

// lockAgent keeps other transactions from changing several sessions of an agent. It is called
// before any session is locked.
func (tx *transaction) lockAgent(key int64) {
	tx.row([]any{&key}, "SELECT key FROM agents WHERE owner = $1 AND key = $2"+
		tx.db.Traits().ForWrite, key)
}

// lease returns the newest lease of the session.
func (r *row) lease() sessionstore.Lease {
	return sessionstore.Lease{ID: r.id, Generation: r.generation}
}

// insert adds a session without a history and a state, which was active at a time, and returns its
// row. It fails with ErrExists if there is a session with the id.
func (tx *transaction) insert(agent int64, n sessionstore.Session, updated int64) *row {
	tx.begins = true
	tx.take(sessionstore.SessionBytes)
	key := tx.next()
	r := &row{id: n.ID, key: key, agent: agent, keys: textsOf(n.Keys), generation: key,
		strand: key, title: sessionstore.CleanTitle(n.Title), created: updated, updated: updated}
	list, values := placeholders(append([]any{string(r.id), key, agent}, r.values()...), 2)
	if !tx.row([]any{new(int64)}, "INSERT INTO sessions (owner, id, key, agent, "+changing+", "+
		derived+") VALUES ($1, "+list+") ON CONFLICT (owner, id) DO NOTHING RETURNING key",
		values...) {
		must(sessionstore.ErrExists)
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
		keys             keyTexts
		created, updated int64
		listed           int64
		meta             []byte
	)
	err = rows.Scan(append([]any{(*string)(&s.ID), &s.Agent.Kind, &s.Agent.Profile, &keys.cwd,
		&keys.dirs, &keys.realCwd, &keys.realDirs, &keys.readOnly, &s.Title, &created, &updated,
		&s.Generation, &s.Turns, &s.Archived, &s.Renamed, &meta, &listed}, more...)...)
	if err != nil {
		return s, err
	}
	s.Created, s.Updated = toTime(created), toTime(updated)
	if listed, s.Gone = unsigned(listed); listed != 0 {
		s.Listed = toTime(listed)
	}
	if len(meta) > 0 {
		s.Meta = meta
	}
	s.Keys, err = parsed.parse(keys)
	return s, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (one sessionstore.Session, err error) {
	if id.Validate() != nil {
		return one, &sessionstore.NotFoundError{ID: id}
	}
	return transact(ctx, s, Read, func(tx *transaction) (one sessionstore.Session) {
		for rows := range tx.rows("SELECT "+recordColumns+", body, state_key FROM sessions s"+
			" LEFT JOIN states st ON st.owner = s.owner AND st.session = s.key AND st.kind = ''"+
			" WHERE s.owner = $1 AND s.id = $2", string(id)) {
			var state, stateKey []byte
			one = got(scanRecord(rows, parsedKeys{}, &state, &stateKey))
			one.State, one.StateKey = state, string(stateKey)
		}
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
		lock := tx.lock
		if a.State != nil {
			lock = tx.lockWithAgent
		}
		r := mustExist(id, lock(id))
		if a.Held != 0 {
			mustHold(sessionstore.Lease{ID: id, Generation: a.Held}, r)
		}
		if a.Held == 0 || history != nil {
			r.interruptTurns(tx.now())
		}
		cwd, err := workspace.ParseDir(r.keys.cwd)
		if err != nil {
			must(damaged(err))
		}
		r.keys, r.generation = textsOf(a.Keys.WithCwd(cwd)), tx.next()
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
		r := tx.hold(l)
		r.keys, r.generation = textsOf(k), tx.next()
		r.listed, r.gone = 0, false
		tx.store(r)
		return r.lease()
	})
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.change(ctx, func(tx *transaction) {
		if r := tx.hold(l); !r.renamed {
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
		r := mustExist(id, tx.lock(id))
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
		r := mustHold(l, tx.lockWithAgent(l.ID))
		tx.saveState(r, state, key)
		tx.store(r)
	})
}

// saveState sets the state key of a session, and stores its state, which it removes if empty. The
// caller has locked the agent if there is a key.
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
	defer s.purgeSoon() // another session may have been deleted
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		agent := tx.addAgent(n.Agent, n.StateKey != "")
		from := mustExist(source, tx.lock(source))
		r := tx.insert(agent, n, tx.now())
		r.title = cmp.Or(r.title, from.title)
		tx.copyHistory(from, r)
		if n.State != nil {
			tx.saveState(r, n.State, n.StateKey)
		} else {
			tx.setStateKey(r, n.StateKey) // which may delete the source
		}
		tx.store(r)
		return r.lease()
	})
}

// copyHistory gives a new session the finished part of another's history, and its states and
// readings if both belong to the same agent.
func (tx *transaction) copyHistory(from, to *row) {
	to.last, to.turns = from.finished()
	var size int64
	tx.row([]any{&size}, "SELECT coalesce(sum(length(body)), 0) FROM segments "+
		"WHERE owner = $1 AND strand = $2 AND seq <= $3", from.strand, to.last)
	tx.take(int(size))
	tx.exec(`
		INSERT INTO segments (owner, strand, seq, body)
		SELECT owner, CAST($3 AS bigint), seq, body FROM segments
		WHERE owner = $1 AND strand = $2 AND seq <= $4`, from.strand, to.strand, to.last)
	if from.agent == to.agent {
		tx.exec(`
			INSERT INTO states (owner, session, kind, body)
			SELECT owner, CAST($3 AS bigint), kind, body FROM states
			WHERE owner = $1 AND session = $2`, from.key, to.key)
		tx.inheritReadings(from, to)
	}
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
