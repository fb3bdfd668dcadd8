package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// batchPause is the pause between two transactions of a long piece of work, in which others write.
const batchPause = 2 * time.Millisecond

// Import implements [sessionstore.Store]. It imports sessions a few at a time. Usually nothing is
// new, which it finds out without a lock.
func (s *Store) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	if err := agent.Validate(); err != nil {
		return 0, err
	}
	for _, n := range sessions {
		if err := n.Validate(); err != nil {
			return 0, err
		}
	}
	for some := range slices.Chunk(sessions, importedSessions) {
		outdated, err := s.outdated(ctx, agent, some)
		if err != nil {
			return added, err
		}
		if len(outdated) == 0 {
			continue
		}
		n, err := transact(ctx, s, Write, func(tx *transaction) int {
			return tx.importAll(tx.agentKey(agent, true), outdated)
		})
		if err == nil {
			added += n
			err = pause.For(ctx, batchPause)
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// outdated returns the sessions that importing would change. Usually there are none.
func (s *Store) outdated(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) ([]sessionstore.Imported, error) {
	return transact(ctx, s, List, func(tx *transaction) (outdated []sessionstore.Imported) {
		l := tx.look(tx.agent(agent), sessions, "")
		for _, n := range sessions {
			if l.learns(n) != nothing {
				outdated = append(outdated, n)
			}
		}
		return outdated
	})
}

// importAll stores sessions of an agent, which is locked, and returns the number of new ones.
func (tx *transaction) importAll(agent int64, sessions []sessionstore.Imported) (added int) {
	l := tx.look(agent, sessions, tx.forWrite())
	for _, n := range sessions {
		switch r := l.rows[n.StateKey]; l.learns(n) {
		case isNew:
			added++
			l.rows[n.StateKey] = tx.insertImported(agent, n, tx.now()) // a list may have it twice
		case changed:
			tx.set(r.id, "title = $3, updated = $4, meta = $5, listed = $6, imported = $7, "+
				"listing = $8", r.title, r.updated, append([]byte{}, r.meta...),
				r.listed, r.imported, int64(r.listing()))
		case remembered:
			l.deleted[n.StateKey] = tx.now()
			tx.exec("UPDATE tombstones SET deleted = $4 "+
				"WHERE owner = $1 AND agent = $2 AND name = $3",
				agent, tombstone(n.StateKey), tx.now())
		}
	}
	return added
}

// insertImported stores a new session, which its agent listed at a time, or 0.
func (tx *transaction) insertImported(agent int64, n sessionstore.Imported, listed int64) *row {
	r := tx.insert(agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, importedTime(n, tx.now(), tx.now()))
	r.imported, r.archived, r.listed, r.meta = true, n.Archived, listed, n.Meta
	tx.set(n.ID, "imported = TRUE, listed = $3, archived = $4, meta = $5, listing = $6",
		listed, n.Archived, append([]byte{}, n.Meta...), int64(r.listing()))
	return r
}

// looked holds what the store has recorded about the sessions of a list, by their state keys.
type looked struct {
	rows    map[string]*row
	deleted map[string]int64
	first   map[string][]sessionstore.Update // of their histories
	now     int64
}

// news says how a list and the store differ about a session.
type news int

const (
	nothing    news = iota
	isNew           // there is such a session
	changed         // the row of the session, as it is in looked once learns has returned
	remembered      // it was deleted here, and is listed long afterwards
)

// learns returns what is new about a session that is imported.
func (l looked) learns(n sessionstore.Imported) news {
	r, deleted := l.rows[n.StateKey], l.deleted[n.StateKey]
	switch {
	case r != nil && r.learn(n, l.first[n.StateKey], l.now):
		return changed
	case deleted != 0 && l.now-deleted > tombstoneRenewal.Milliseconds():
		return remembered
	case r == nil && deleted == 0 && !n.OnlyKnown:
		return isNew
	}
	return nothing
}

// look returns what is recorded about sessions of an agent, which it locks if asked to.
func (tx *transaction) look(agent int64, sessions []sessionstore.Imported, lock string) looked {
	l := looked{rows: make(map[string]*row), deleted: make(map[string]int64),
		first: make(map[string][]sessionstore.Update), now: tx.now()}
	names := make([][]byte, len(sessions))
	plain := make(map[string]string, len(sessions))
	for i, n := range sessions {
		names[i] = tombstone(n.StateKey)
		plain[string(names[i])] = n.StateKey
	}
	list, args := placeholders(names, 3)
	of, args := "agent = $2 AND name IN ("+list+")", append([]any{agent}, args...)
	for _, r := range tx.all(of+lock, args...) {
		l.rows[plain[string(r.name)]] = r
	}
	tx.rows(func(rows Rows) {
		var (
			name    []byte
			deleted int64
		)
		must(rows.Scan(&name, &deleted))
		l.deleted[plain[string(name)]] = deleted
	}, "SELECT name, deleted FROM tombstones WHERE owner = $1 AND "+of, args...)
	for _, n := range sessions {
		if r := l.rows[n.StateKey]; r != nil && r.mayRetitle(n) {
			for _, body := range tx.part(r, 0, min(r.last, 1)) {
				l.first[n.StateKey] = slices.Collect(sessionstore.Unpack(body))
			}
		}
	}
	return l
}

// Adopt implements [sessionstore.Store].
func (s *Store) Adopt(
	ctx context.Context, agent sessionstore.Agent, n sessionstore.Imported,
	history sessionstore.Draft,
) (lease sessionstore.Lease, err error) {
	if err := cmp.Or(agent.Validate(), n.Validate()); err != nil {
		return lease, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return lease, err
	}
	defer s.purgeSoon()
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		key := tx.agentKey(agent, true)
		if tx.look(key, []sessionstore.Imported{n}, "").deleted[n.StateKey] != 0 {
			must(&sessionstore.NotFoundError{ID: n.ID})
		}
		r := tx.insertImported(key, n, 0)
		tx.setKeys(r, n.Keys)
		own.appendTo(tx, r)
		tx.store(r, "")
		return r.lease()
	})
}

// Named implements [sessionstore.Store].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (sessionstore.ID, error) {
	return transact(ctx, s, Read, func(tx *transaction) sessionstore.ID {
		r := tx.one("agent = $2 AND name = $3", tx.agent(agent), tombstone(stateKey))
		if r == nil {
			must(&sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)})
		}
		return r.id
	})
}

// retiredSessions is the number of sessions that a transaction of Retain retires.
const retiredSessions = 32

// Retain implements [sessionstore.Store].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	missing, err := transact(ctx, s, List, func(tx *transaction) []sessionstore.ID {
		return tx.missing(tx.agent(agent), l)
	})
	for some := range slices.Chunk(missing, retiredSessions) {
		if err != nil {
			return n, err
		}
		err = s.change(ctx, func(tx *transaction) {
			tx.lockAgent(tx.agent(agent))
			for _, id := range some {
				tx.retire(id)
			}
		})
		if err == nil {
			n += len(some)
			err = pause.For(ctx, batchPause)
		}
	}
	if len(missing) > 0 {
		s.purgeSoon()
	}
	return n, err
}

// missing returns the sessions that an agent listed before and that are not in l.
func (tx *transaction) missing(agent int64, l sessionstore.Listed) (missing []sessionstore.ID) {
	var (
		id       sessionstore.ID
		stateKey []byte
		cwd      string
	)
	cwds := pathsOf(l.Cwds)
	tx.each([]any{(*string)(&id), &stateKey, &cwd}, func() {
		if !l.StateKeys[string(stateKey)] && (l.Cwds == nil || slices.Contains(cwds, cwd)) {
			missing = append(missing, id)
		}
	}, "SELECT id, state_key, cwd FROM sessions WHERE owner = $1 AND agent = $2 "+
		"AND listed > 0 AND listed < $3", agent, l.Asked.UnixMilli())
	return missing
}

// retire deletes a session that its agent has deleted, if it was never opened, renamed or archived
// here. It marks others. The caller has locked the agent.
func (tx *transaction) retire(id sessionstore.ID) {
	if r := tx.seek(id, tx.forWrite()); r != nil && r.retires() {
		tx.deleteRows(r)
	}
	tx.set(id, "listed = -abs(listed)")
}

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. A session that gets another key is remembered by the
// one before, and what the agent's list said of it no longer applies. One that loses its key is not
// remembered: its agent may list it again. The caller has locked the agent.
func (tx *transaction) setStateKey(r *row, stateKey string) {
	if stateKey == "" {
		tx.dropStateKey(r)
		return
	}
	name := tombstone(stateKey)
	if string(r.name) == string(name) {
		return
	}
	if r.name != nil {
		tx.addTombstone(r.agent, r.name)
		tx.set(r.id, "listed = 0, meta = $3", []byte{})
	}
	r.name = name
	if other := tx.named(r.agent, name); other != nil && other.neverUsed() {
		tx.deleteRows(other)
	} else if other != nil {
		tx.dropStateKey(other)
	}
	tx.exec("DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name = $3", r.agent, name)
	tx.set(r.id, "name = $3, state_key = $4", name, []byte(stateKey))
}

// named returns and locks the session of an agent with a state key, of which name is the tombstone,
// or nil.
func (tx *transaction) named(agent int64, name []byte) *row {
	return tx.one("agent = $2 AND name = $3"+tx.forWrite(), agent, name)
}

// dropStateKey removes the state key of a session, and what the agent's list said of it.
func (tx *transaction) dropStateKey(r *row) {
	r.imported = false
	tx.set(r.id, "name = NULL, state_key = NULL, imported = FALSE, listed = 0, listing = $3",
		int64(r.listing()))
}

// tombstonesAtOnce is the number of old tombstones that adding one deletes at most.
const tombstonesAtOnce = 8

// addTombstone adds a tombstone, so that the session is not imported again, and deletes some of
// those that are too old or too many.
func (tx *transaction) addTombstone(agent int64, name []byte) {
	tx.exec(`
		INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, name, tx.now())
	oldest := tx.now() - sessionstore.TombstoneAge.Milliseconds()
	var full int64
	tx.row([]any{&full}, "SELECT deleted FROM tombstones WHERE owner = $1 AND agent = $2 "+
		"ORDER BY deleted DESC LIMIT 1 OFFSET $3", agent, int64(sessionstore.MaxTombstones-1))
	tx.exec(`
		DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name IN (
			SELECT name FROM tombstones WHERE owner = $1 AND agent = $2 AND deleted < $3
			ORDER BY deleted LIMIT $4)`, agent, max(oldest, full), tombstonesAtOnce)
}
