package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// tombstoneStep is how much older a tombstone gets before it is renewed, so that a list that changes nothing
// writes nothing.
const tombstoneStep = 24 * time.Hour

// Import implements [sessionstore.Store]. Mostly nothing is new: that is found out without the write lock.
func (s *Store) Import(ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported) (added int, err error) {
	for _, n := range sessions {
		if err := n.Validate(); err != nil {
			return 0, err
		}
	}
	var fresh []sessionstore.Imported
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		fresh, err = s.news(ctx, tx, agent, sessions)
		return err
	})
	if err != nil || len(fresh) == 0 {
		return 0, err
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		key, err := agentKey(ctx, tx, agent)
		if err != nil {
			return err
		}
		added = 0
		for _, n := range fresh {
			isNew, err := s.importOne(ctx, tx, key, agent, n)
			if err != nil {
				return err
			}
			if isNew {
				added++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// standing is what the store knows of a runtime's session.
type standing struct {
	session, updated int64 // 0 if it is not known
	title            string
	deleted          int64 // 0 if it was not deleted
}

func standingOf(ctx context.Context, tx *sql.Tx, agent int64, name string) (at standing, err error) {
	err = tx.QueryRowContext(ctx, "SELECT deleted FROM tombstones WHERE agent = ? AND name = ?", agent, buried(name)).Scan(&at.deleted)
	if !errors.Is(err, sql.ErrNoRows) {
		return at, err
	}
	err = tx.QueryRowContext(ctx, `
		SELECT sessions.key, updated, title FROM runtime_keys JOIN sessions ON sessions.key = session
		WHERE runtime_keys.agent = ? AND name = ?`, agent, name).Scan(&at.session, &at.updated, &at.title)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// news are the sessions of which something is not on record.
func (s *Store) news(ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported) ([]sessionstore.Imported, error) {
	agents, err := agentsOf(ctx, tx, agent)
	if err != nil || len(agents) == 0 {
		return sessions, err
	}
	var fresh []sessionstore.Imported
	for key := range agents {
		for _, n := range sessions {
			at, err := standingOf(ctx, tx, key, n.StateKey)
			if err != nil {
				return nil, err
			}
			if at.lacks(n, s.clock()) {
				fresh = append(fresh, n)
			}
		}
	}
	return fresh, nil
}

// lacks reports whether n, now, says more than is on record.
func (at standing) lacks(n sessionstore.Imported, now int64) bool {
	switch {
	case at.deleted != 0:
		return now-at.deleted > tombstoneStep.Milliseconds()
	case at.session == 0:
		return true
	}
	return n.Title != "" && n.Title != at.title || !n.Updated.IsZero() && n.Updated.UnixMilli() > at.updated
}

func (s *Store) importOne(ctx context.Context, tx *sql.Tx, agent int64, of sessionstore.Agent, n sessionstore.Imported) (isNew bool, err error) {
	at, err := standingOf(ctx, tx, agent, n.StateKey)
	if err != nil {
		return false, err
	}
	now, updated := s.clock(), int64(0)
	if !n.Updated.IsZero() {
		updated = n.Updated.UnixMilli()
	}
	switch {
	case at.deleted != 0:
		_, err = tx.ExecContext(ctx, "UPDATE tombstones SET deleted = ? WHERE agent = ? AND name = ?", now, agent, buried(n.StateKey))
		return false, err
	case at.session != 0:
		_, err = tx.ExecContext(ctx, "UPDATE sessions SET title = CASE ?1 WHEN '' THEN title ELSE ?1 END, updated = max(updated, ?2) WHERE key = ?3",
			n.Title, updated, at.session)
		return false, err
	}
	if updated == 0 {
		updated = now
	}
	_, key, err := s.insert(ctx, tx, sessionstore.NewSession{
		ID: n.ID, Agent: of, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, updated, inheritance{})
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE runtime_keys SET imported = 1 WHERE session = ?", key)
	return true, err
}

// nameSession notes what the runtime calls a session, "" for nothing. No other session is called so from then on: one that
// was only imported is gone with it. What the session was called before was given up, unless it is called nothing now.
func (s *Store) nameSession(ctx context.Context, tx *sql.Tx, session int64, name string) error {
	if name == "" {
		_, err := tx.ExecContext(ctx, "DELETE FROM runtime_keys WHERE session = ?", session)
		return err
	}
	var (
		agent  int64
		before string
	)
	err := tx.QueryRowContext(ctx, `
		SELECT sessions.agent, coalesce(name, '') FROM sessions LEFT JOIN runtime_keys ON session = sessions.key
		WHERE sessions.key = ?`, session).Scan(&agent, &before)
	if err != nil {
		return err
	}
	if before != "" && before != name {
		if err := s.buryName(ctx, tx, agent, before); err != nil {
			return err
		}
	}
	if err := unname(ctx, tx, session, agent, name); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM tombstones WHERE agent = ? AND name = ?", agent, buried(name)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO runtime_keys (session, agent, name, imported) VALUES (?, ?, ?, 0)
		ON CONFLICT (session) DO UPDATE SET name = excluded.name`, session, agent, name)
	return err
}

// unname takes the name from another session that has it.
func unname(ctx context.Context, tx *sql.Tx, session, agent int64, name string) error {
	var (
		other  row
		unused bool
	)
	err := tx.QueryRowContext(ctx, `
		SELECT sessions.key, strand, imported AND turns = 0 AND last = 0 FROM runtime_keys JOIN sessions ON sessions.key = session
		WHERE runtime_keys.agent = ? AND name = ? AND session <> ?`, agent, name, session).Scan(&other.key, &other.strand, &unused)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if unused {
		return remove(ctx, tx, other)
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM runtime_keys WHERE session = ?", other.key)
	return err
}

// buried is a runtime's name for a session as a tombstone has it.
func buried(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// bury remembers what the runtime calls a session that is about to be removed.
func (s *Store) bury(ctx context.Context, tx *sql.Tx, session int64) error {
	var (
		agent int64
		name  string
	)
	err := tx.QueryRowContext(ctx, "SELECT agent, name FROM runtime_keys WHERE session = ?", session).Scan(&agent, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.buryName(ctx, tx, agent, name)
}

// buryName remembers a session of a runtime that is not to be imported, and forgets the oldest that were remembered so.
func (s *Store) buryName(ctx context.Context, tx *sql.Tx, agent int64, name string) error {
	now := s.clock()
	_, err := tx.ExecContext(ctx, `
		INSERT INTO tombstones (agent, name, deleted) VALUES (?, ?, ?)
		ON CONFLICT (agent, name) DO UPDATE SET deleted = excluded.deleted`, agent, buried(name), now)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM tombstones WHERE deleted < max(?1,
			coalesce((SELECT deleted FROM tombstones ORDER BY deleted DESC LIMIT 1 OFFSET ?2), 0))`,
		now-sessionstore.TombstoneAge.Milliseconds(), sessionstore.MaxTombstones-1)
	return err
}
