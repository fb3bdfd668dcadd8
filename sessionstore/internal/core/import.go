package core

import (
	"context"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/internal/text/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// batchPause is the pause between two transactions of a long piece of work, in which others write.
const batchPause = 2 * time.Millisecond

// importedSessions is the number of listed sessions that are compared with the store at once, and
// stored in one transaction.
const importedSessions = 250

// Import implements [sessionstore.Store]. It imports sessions a few at a time. Usually nothing is
// new, which it finds out without a lock.
func (s *Store) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Session, onlyKnown bool,
) (added int, err error) {
	if err := agent.Validate(); err != nil {
		return 0, err
	}
	for _, n := range sessions {
		if err := n.ValidateListed(); err != nil {
			return 0, err
		}
	}
	for some := range slices.Chunk(sessions, importedSessions) {
		hasNews, err := transact(ctx, s, List, func(tx *transaction) bool {
			changed, missing := tx.news(tx.agent(agent), some, onlyKnown, tx.all)
			return len(changed)+len(missing) > 0
		})
		if err != nil {
			return added, err
		}
		if !hasNews {
			continue
		}
		n, err := transact(ctx, s, Write, func(tx *transaction) int {
			key := tx.addAgent(agent, true)
			changed, missing := tx.news(key, some, onlyKnown, tx.lockAll)
			for _, r := range changed {
				tx.store(r)
			}
			for _, n := range missing {
				r := tx.insertImported(key, n)
				r.listed = tx.now()
				tx.store(r)
			}
			return len(missing)
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

// news returns what a part of an agent's list adds to the store: rows as they are to be stored, and
// sessions that it does not have. all finds those that it has.
func (tx *transaction) news(
	agent int64, sessions []sessionstore.Session, onlyKnown bool,
	all func(condition string, args ...any) []*row,
) (changed []*row, missing []sessionstore.Session) {
	names := make([][]byte, len(sessions))
	for i, n := range sessions {
		names[i] = tombstone(n.StateKey)
	}
	list, args := placeholders(names, 3)
	of, args := "agent = $2 AND name IN ("+list+")", append([]any{agent}, args...)
	known, skipped := make(map[string]*row), make(map[string]bool)
	for _, r := range all(of, args...) {
		known[string(r.name)] = r
	}
	deleted := tx.rows("SELECT name FROM tombstones WHERE owner = $1 AND "+of, args...)
	for _, name := range column[[]byte](deleted) {
		skipped[string(name)] = true
	}
	for i, n := range sessions {
		switch r := known[string(names[i])]; {
		case r != nil && r.learn(n, onlyKnown, tx.beginning(r, n), tx.now()):
			changed = append(changed, r)
		case r == nil && !onlyKnown && !skipped[string(names[i])]:
			missing = append(missing, n)
			skipped[string(names[i])] = true // a list may have it twice
		}
	}
	return changed, missing
}

// beginning returns the first updates of a session's history if importing n needs them.
func (tx *transaction) beginning(r *row, n sessionstore.Session) (updates []sessionstore.Update) {
	if r.mayRetitle(n) {
		for _, body := range tx.part(r, 0, min(r.last, 1)) {
			updates = slices.Collect(sessionstore.Unpack(body))
		}
	}
	return updates
}

// insertImported adds a session that its agent has, and returns its row.
func (tx *transaction) insertImported(agent int64, n sessionstore.Session) *row {
	r := tx.insert(agent, n, importedTime(n, tx.now(), tx.now()))
	tx.take(len(n.Meta))
	tx.saveState(r, n.State, n.StateKey)
	r.imported, r.archived, r.meta = true, n.Archived, n.Meta
	return r
}

// Adopt implements [sessionstore.Store].
func (s *Store) Adopt(
	ctx context.Context, n sessionstore.Session, history sessionstore.Draft,
) (lease sessionstore.Lease, err error) {
	if err := n.ValidateListed(); err != nil {
		return lease, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return lease, err
	}
	defer s.purgeSoon()
	return transact(ctx, s, Write, func(tx *transaction) sessionstore.Lease {
		agent := tx.addAgent(n.Agent, true)
		if tx.row([]any{new(int64)}, "SELECT agent FROM tombstones "+
			"WHERE owner = $1 AND agent = $2 AND name = $3", agent, tombstone(n.StateKey)) {
			must(&sessionstore.NotFoundError{ID: n.ID})
		}
		r := tx.insertImported(agent, n)
		r.generation = tx.next() // it is opened, see retire
		own.appendTo(tx, r)
		tx.store(r)
		return r.lease()
	})
}

// Named implements [sessionstore.Store].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (sessionstore.ID, error) {
	return transact(ctx, s, Read, func(tx *transaction) sessionstore.ID {
		r := only(tx.all("agent = $2 AND name = $3", tx.agent(agent), tombstone(stateKey)))
		return mustExist(sessionstore.ID(stateKey), r).id
	})
}

// Retain implements [sessionstore.Store].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	missing, err := transact(ctx, s, List, func(tx *transaction) []string {
		return tx.missing(tx.agent(agent), l)
	})
	if err != nil {
		return 0, err
	}
	return s.oneByOne(ctx, missing, (*transaction).retire)
}

// missing returns the sessions that an agent listed before and that are not in l.
func (tx *transaction) missing(agent int64, l sessionstore.Listed) (missing []string) {
	cwds := pathsOf(l.Cwds)
	for rows := range tx.rows("SELECT id, state_key, cwd FROM sessions WHERE owner = $1 AND "+
		"agent = $2 AND listed > 0 AND listed < $3", agent, l.Asked.UnixMilli()) {
		var (
			id, cwd  string
			stateKey []byte
		)
		must(rows.Scan(&id, &stateKey, &cwd))
		if !l.StateKeys[string(stateKey)] && (l.Cwds == nil || slices.Contains(cwds, cwd)) {
			missing = append(missing, id)
		}
	}
	return missing
}

// retire deletes a session that its agent has deleted, if it was never opened, renamed or archived
// here. It marks others.
func (tx *transaction) retire(id string) bool {
	r := tx.lockWithAgent(sessionstore.ID(id))
	switch {
	case r == nil:
		return false
	case r.untouched() && r.generation == r.key: // opening it would have made another lease
		tx.deleteRows(r)
	default:
		r.gone = r.listed != 0
		tx.store(r)
	}
	return true
}

// setStateKey sets the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. A session that gets another key is remembered by the
// one before, and what the agent's list said of it no longer applies. One that loses its key is not
// remembered: its agent may list it again. The caller has locked the agent if there is a key.
func (tx *transaction) setStateKey(r *row, stateKey string) {
	if stateKey == "" {
		r.dropStateKey()
		return
	}
	name := tombstone(stateKey)
	if string(r.name) == string(name) {
		return
	}
	if r.name != nil {
		tx.addTombstone(r.agent, r.name)
		r.listed, r.gone, r.meta = 0, false, nil
	}
	r.name, r.stateKey = name, []byte(stateKey)
	if other := tx.named(r.agent, name); other != nil && other.neverUsed() {
		tx.deleteRows(other)
	} else if other != nil {
		other.dropStateKey()
		tx.store(other)
	}
	tx.exec("DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name = $3", r.agent, name)
}

// named returns and locks the session of an agent with a state key, of which name is the tombstone,
// or nil.
func (tx *transaction) named(agent int64, name []byte) *row {
	return only(tx.lockAll("agent = $2 AND name = $3", agent, name))
}

// dropStateKey removes the state key of a session, and what the agent's list said of it.
func (r *row) dropStateKey() {
	r.name, r.stateKey = nil, nil
	r.imported, r.listed, r.gone = false, 0, false
}

const (
	// maxTombstones is the number of deleted sessions of an agent that are remembered.
	maxTombstones = 10_000
	// forgottenAtOnce is the number of tombstones above that which adding one deletes at most.
	forgottenAtOnce = 8
)

// addTombstone adds a tombstone, so that the session is not imported again, and deletes the oldest
// if there are too many.
func (tx *transaction) addTombstone(agent int64, name []byte) {
	tx.exec(`
		INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, name, tx.now())
	tx.exec(`
		DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name IN (
			SELECT name FROM tombstones WHERE owner = $1 AND agent = $2
			ORDER BY deleted DESC LIMIT $3 OFFSET $4)`, agent, forgottenAtOnce, maxTombstones)
}
