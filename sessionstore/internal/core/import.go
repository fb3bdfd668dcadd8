package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	for some := range slices.Chunk(sessions, comparedSessions) {
		outdated, err := s.outdated(ctx, agent, some)
		if err != nil {
			return added, err
		}
		for piece := range slices.Chunk(outdated, importedSessions) {
			n := 0
			err := s.write(ctx, func(tx *transaction) error {
				key, err := tx.agentKey(agent, true)
				if err == nil {
					n, err = tx.importAll(key, piece)
				}
				return err
			})
			if err != nil {
				return added, err
			}
			added += n
			if err := pause.For(ctx, batchPause); err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// outdated returns the sessions that importing would change. Usually there are none.
func (s *Store) outdated(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (outdated []sessionstore.Imported, err error) {
	err = s.list(ctx, func(tx *transaction) error {
		outdated = nil
		agents, err := tx.agents(agent)
		if err != nil {
			return err
		}
		key := int64(0)
		if len(agents) == 1 {
			key = agents[0]
		}
		l, err := tx.look(key, sessions, "")
		if err != nil {
			return err
		}
		for _, n := range sessions {
			if before := l.known[n.StateKey]; l.imported(n) != before {
				outdated = append(outdated, n)
			}
		}
		return nil
	})
	return outdated, err
}

// importAll stores sessions of an agent, which is locked, and returns the number of new ones.
func (tx *transaction) importAll(
	agent int64, sessions []sessionstore.Imported,
) (added int, err error) {
	l, err := tx.look(agent, sessions, tx.forWrite())
	if err != nil {
		return 0, err
	}
	for _, n := range sessions {
		before, after := l.known[n.StateKey], l.imported(n)
		switch {
		case after == before:
		case before == known{}:
			added++
			l.rows[n.StateKey], err = tx.insertImported(agent, n, after)
		case after.deleted != 0:
			err = tx.exec("UPDATE tombstones SET deleted = $4 "+
				"WHERE owner = $1 AND agent = $2 AND name = $3", agent, tombstone(n.StateKey), after.deleted)
		default:
			err = tx.updateImported(l.rows[n.StateKey].id, before, after)
		}
		if err != nil {
			return 0, err
		}
		l.known[n.StateKey] = after // a list may have it twice
	}
	return added, nil
}

// insertImported stores a new session.
func (tx *transaction) insertImported(
	agent int64, n sessionstore.Imported, k known,
) (*row, error) {
	r, err := tx.insert(agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: k.title, State: n.State, StateKey: n.StateKey,
	}, k.updated)
	if err != nil {
		return nil, err
	}
	r.imported, r.archived = true, n.Archived
	return r, tx.set(n.ID, "imported = TRUE, listed = $3, archived = $4, meta = $5, listing = $6",
		k.listed, n.Archived, []byte(k.meta), int64(r.listing()))
}

func (tx *transaction) updateImported(id sessionstore.ID, before, after known) error {
	imported := ""
	if before.unused && !after.unused {
		imported = ", imported = TRUE"
	}
	err := tx.set(id, "title = $3, updated = $4, meta = $5, listed = $6"+imported,
		after.title, after.updated, []byte(after.meta), after.listed)
	if err == nil && imported != "" {
		err = tx.relist(id)
	}
	return err
}

// looked is what the store has recorded about the sessions of a list.
type looked struct {
	known map[string]known
	rows  map[string]*row
	first map[string][]sessionstore.Update // of their histories
	now   int64
}

// look returns what is recorded about sessions, which it locks if asked to.
func (tx *transaction) look(
	agent int64, sessions []sessionstore.Imported, lock string,
) (l looked, err error) {
	l = looked{known: make(map[string]known), rows: make(map[string]*row),
		first: make(map[string][]sessionstore.Update), now: tx.now}
	args := []any{agent}
	plain := make(map[string]string, len(sessions))
	var names []string
	for _, n := range sessions {
		name := tombstone(n.StateKey)
		args, plain[string(name)] = append(args, name), n.StateKey
		names = append(names, fmt.Sprintf("$%d", len(args)+1))
	}
	of := "agent = $2 AND name IN (" + strings.Join(names, ", ") + ")"
	found, err := tx.all(of+lock, args...)
	if err != nil {
		return l, err
	}
	for _, r := range found {
		stateKey := plain[string(r.name)]
		l.known[stateKey], l.rows[stateKey] = r.known(), r
	}
	var (
		name    []byte
		deleted int64
	)
	err = tx.each([]any{&name, &deleted}, func() error {
		l.known[plain[string(name)]] = known{deleted: deleted}
		return nil
	}, "SELECT name, deleted FROM tombstones WHERE owner = $1 AND "+of, args...)
	for _, n := range sessions {
		if err == nil && l.known[n.StateKey].mayRetitle(n) {
			var first [][]byte
			first, err = tx.bodies(l.rows[n.StateKey].strand, 0, 1)
			for _, body := range first {
				l.first[n.StateKey] = slices.Collect(sessionstore.Unpack(body))
			}
		}
	}
	return l, err
}

// imported returns the record of a session once it is imported.
func (l looked) imported(n sessionstore.Imported) known {
	return l.known[n.StateKey].imported(n, l.first[n.StateKey], l.now)
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
	err = s.write(ctx, func(tx *transaction) error {
		key, err := tx.agentKey(agent, true)
		if err != nil {
			return err
		}
		l, err := tx.look(key, []sessionstore.Imported{n}, "")
		if err != nil {
			return err
		}
		if l.known[n.StateKey].deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		r, err := tx.insertImported(key, n, adopted(n, tx.now))
		if err == nil {
			err = tx.setKeys(r, n.Keys)
		}
		if err == nil && own != nil {
			err = own.appendTo(tx, r)
		}
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		return tx.store(r, "")
	})
	s.purgeSoon()
	return lease, err
}

// Named implements [sessionstore.Store].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (id sessionstore.ID, err error) {
	notFound := &sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)}
	if agent.Validate() != nil {
		return "", notFound
	}
	err = s.read(ctx, func(tx *transaction) error {
		err := tx.row([]any{(*string)(&id)}, "SELECT id FROM sessions WHERE owner = $1 "+
			"AND name = $2 AND agent IN (SELECT key FROM agents WHERE owner = $1 AND kind = $3 AND profile = $4)",
			tombstone(stateKey), agent.Kind, agent.Profile)
		if errors.Is(err, errNoRow) {
			err = notFound
		}
		return err
	})
	return id, err
}

// retiredSessions is the number of sessions that a transaction of Retain retires.
const retiredSessions = 32

// Retain implements [sessionstore.Store].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	var (
		key     int64
		missing []sessionstore.ID
	)
	err = s.list(ctx, func(tx *transaction) error {
		missing = nil
		agents, err := tx.agents(agent)
		if err != nil || len(agents) != 1 {
			return err
		}
		key = agents[0]
		missing, err = tx.missing(key, l)
		return err
	})
	for some := range slices.Chunk(missing, retiredSessions) {
		if err != nil {
			return n, err
		}
		err = s.write(ctx, func(tx *transaction) error {
			err := tx.lockAgent(key)
			for _, id := range some {
				if err == nil {
					err = tx.retire(id)
				}
			}
			return err
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
func (tx *transaction) missing(
	agent int64, l sessionstore.Listed,
) (missing []sessionstore.ID, err error) {
	var (
		id       sessionstore.ID
		stateKey []byte
		cwd      string
	)
	cwds := pathsOf(l.Cwds)
	err = tx.each([]any{(*string)(&id), &stateKey, &cwd}, func() error {
		if !l.StateKeys[string(stateKey)] && (l.Cwds == nil || slices.Contains(cwds, cwd)) {
			missing = append(missing, id)
		}
		return nil
	}, "SELECT id, state_key, cwd FROM sessions WHERE owner = $1 AND agent = $2 "+
		"AND listed > 0 AND listed < $3", agent, l.Asked.UnixMilli())
	return missing, err
}

// retire deletes a session that its agent has deleted, if it was never opened, renamed or archived
// here. It marks others. The caller has locked the agent.
func (tx *transaction) retire(id sessionstore.ID) error {
	one, err := tx.one("id = $2", string(id))
	switch {
	case err != nil || one == nil:
		return err
	case one.retires():
		return tx.deleteRows(one)
	}
	return tx.set(id, "listed = -abs(listed)")
}

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. A session that gets another key is remembered by the
// one before, and what the agent's list said of it no longer applies. One that loses its key is not
// remembered: its agent may list it again. The caller has locked the agent.
func (tx *transaction) setStateKey(r *row, stateKey string) error {
	if stateKey == "" {
		r.imported = false
		return tx.dropStateKey(r.id)
	}
	name := tombstone(stateKey)
	if string(r.name) == string(name) {
		return nil
	}
	if r.name != nil {
		if err := tx.addTombstone(r.agent, r.name); err != nil {
			return err
		}
		if err := tx.set(r.id, "listed = 0, meta = $3", []byte{}); err != nil {
			return err
		}
	}
	r.name = name
	other, err := tx.one("agent = $2 AND name = $3 AND id <> $4", r.agent, name, string(r.id))
	switch {
	case err != nil:
		return err
	case other == nil:
	case other.neverUsed():
		err = tx.deleteRows(other)
	default:
		err = tx.dropStateKey(other.id)
	}
	if err == nil {
		err = tx.exec("DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name = $3",
			r.agent, name)
	}
	if err != nil {
		return err
	}
	return tx.set(r.id, "name = $3, state_key = $4", name, []byte(stateKey))
}

// dropStateKey removes the state key of a session, and what the agent's list said of it.
func (tx *transaction) dropStateKey(id sessionstore.ID) error {
	err := tx.set(id, "name = NULL, state_key = NULL, imported = FALSE, listed = 0")
	if err == nil {
		err = tx.relist(id)
	}
	return err
}

// tombstonesAtOnce is the number of old tombstones that adding one deletes at most.
const tombstonesAtOnce = 8

// addTombstone adds a tombstone, so that the session is not imported again, and deletes some of
// those that are too old or too many.
func (tx *transaction) addTombstone(agent int64, name []byte) error {
	err := tx.exec(`
		INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, name, tx.now)
	if err != nil {
		return err
	}
	oldest := tx.now - sessionstore.TombstoneAge.Milliseconds()
	var full int64
	err = tx.row([]any{&full}, "SELECT deleted FROM tombstones WHERE owner = $1 AND agent = $2 "+
		"ORDER BY deleted DESC LIMIT 1 OFFSET $3", agent, int64(sessionstore.MaxTombstones-1))
	if err != nil && !errors.Is(err, errNoRow) {
		return err
	}
	return tx.exec(`
		DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name IN (
			SELECT name FROM tombstones WHERE owner = $1 AND agent = $2 AND deleted < $3
			ORDER BY deleted LIMIT $4)`, agent, max(oldest, full), tombstonesAtOnce)
}
