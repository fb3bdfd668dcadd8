package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// tombstoneRenewal is the age at which a tombstone is renewed when its session is still listed. It
// is not renewed each time, so that importing an unchanged list writes nothing.
const tombstoneRenewal = 24 * time.Hour

// Import implements [sessionstore.Store]. Usually nothing is new, which it finds out without the
// write lock.
func (s *Store) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	for _, n := range sessions {
		if err := n.Validate(); err != nil {
			return 0, err
		}
	}
	var fresh []sessionstore.Imported
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		fresh, err = s.outdated(ctx, tx, agent, sessions)
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

// importRecord describes the stored session, or the tombstone, of a session that an agent lists.
type importRecord struct {
	session, created, updated int64 // 0 if it is unknown
	title, meta               string
	renamed                   bool
	unused                    bool  // as in [sessionstore.UnusedFilter]
	deleted                   int64 // when it was deleted or given up, 0 if it was not
}

func findImported(
	ctx context.Context, tx *sql.Tx, agent int64, stateKey string,
) (at importRecord, err error) {
	err = tx.QueryRowContext(ctx, "SELECT deleted FROM tombstones WHERE agent = ? AND name = ?",
		agent, tombstoneName(stateKey)).Scan(&at.deleted)
	if !errors.Is(err, sql.ErrNoRows) {
		return at, err
	}
	err = tx.QueryRowContext(ctx, `
		SELECT sessions.key, created, updated, title, coalesce(meta, ''), coalesce(renamed, 0),
			NOT imported AND turns = 0 AND last = 0
		FROM runtime_keys JOIN sessions ON sessions.key = runtime_keys.session
		LEFT JOIN labels ON labels.session = sessions.key
		WHERE runtime_keys.agent = ? AND name = ?`, agent, stateKey).
		Scan(&at.session, &at.created, &at.updated, &at.title, &at.meta, &at.renamed, &at.unused)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// outdated returns the sessions of which the store does not have the latest.
func (s *Store) outdated(
	ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported,
) ([]sessionstore.Imported, error) {
	agents, err := agentsOf(ctx, tx, agent)
	if err != nil || len(agents) == 0 {
		return sessions, err
	}
	var fresh []sessionstore.Imported
	for key := range agents {
		for _, n := range sessions {
			at, err := findImported(ctx, tx, key, n.StateKey)
			if err != nil {
				return nil, err
			}
			title, err := at.newTitle(ctx, tx, n)
			if err != nil {
				return nil, err
			}
			if title != at.title || at.outdated(n, s.clock()) {
				fresh = append(fresh, n)
			}
		}
	}
	return fresh, nil
}

// outdated reports whether importing n now would change something besides the title.
func (at importRecord) outdated(n sessionstore.Imported, now int64) bool {
	switch {
	case at.deleted != 0:
		return now-at.deleted > tombstoneRenewal.Milliseconds()
	case at.session == 0:
		return true
	}
	return string(n.Meta) != at.meta || at.usedSince(n) ||
		!n.Updated.IsZero() && n.Updated.UnixMilli() > at.updated
}

// usedSince reports whether n shows that an unused session was used without this program.
func (at importRecord) usedSince(n sessionstore.Imported) bool {
	return at.unused && !n.Updated.IsZero() &&
		n.Updated.UnixMilli()-at.created > sessionstore.UnusedGrace.Milliseconds()
}

// newTitle returns the session's title once n is imported. An unused session gets its title with
// its first prompt.
func (at importRecord) newTitle(
	ctx context.Context, tx *sql.Tx, n sessionstore.Imported,
) (string, error) {
	if at.session == 0 || at.renamed || at.unused || n.Title == at.title {
		return at.title, nil
	}
	var first []byte
	err := tx.QueryRowContext(ctx, `
		SELECT body FROM segments WHERE strand = coalesce(
			(SELECT strand FROM inherits WHERE session = ?1 ORDER BY last LIMIT 1),
			(SELECT strand FROM sessions WHERE key = ?1))
		ORDER BY seq LIMIT 1`, at.session).Scan(&first)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	return n.NewTitle(at.title, slices.Collect(updatesIn(first))), nil
}

// importOne imports a session, and reports whether it is new.
func (s *Store) importOne(
	ctx context.Context, tx *sql.Tx, agentKey int64, agent sessionstore.Agent, n sessionstore.Imported,
) (isNew bool, err error) {
	at, err := findImported(ctx, tx, agentKey, n.StateKey)
	if err != nil {
		return false, err
	}
	switch {
	case at.deleted != 0:
		err = exec(ctx, tx, "UPDATE tombstones SET deleted = ? WHERE agent = ? AND name = ?",
			s.clock(), agentKey, tombstoneName(n.StateKey))
		return false, err
	case at.session != 0:
		return false, importKnown(ctx, tx, at, n)
	}
	return true, s.insertImported(ctx, tx, agent, n)
}

// insertImported stores a new session that an agent knows.
func (s *Store) insertImported(
	ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, n sessionstore.Imported,
) error {
	updated := s.clock()
	if !n.Updated.IsZero() {
		updated = n.Updated.UnixMilli()
	}
	_, key, err := s.insert(ctx, tx, sessionstore.NewSession{
		ID: n.ID, Agent: agent, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, updated)
	if err == nil {
		err = markImported(ctx, tx, key)
	}
	if err == nil && n.Archived {
		err = setLabel(ctx, tx, key, "archived", 1)
	}
	if err == nil && len(n.Meta) > 0 {
		err = setLabel(ctx, tx, key, "meta", string(n.Meta))
	}
	return err
}

// Adopt implements [sessionstore.Store].
func (s *Store) Adopt(
	ctx context.Context, agent sessionstore.Agent, n sessionstore.Imported,
	history sessionstore.Draft,
) (lease sessionstore.Lease, err error) {
	if err := n.Validate(); err != nil {
		return lease, err
	}
	own, err := s.draftOf("", history)
	if err != nil {
		return lease, err
	}
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		key, err := agentKey(ctx, tx, agent)
		if err != nil {
			return err
		}
		if at, err := findImported(ctx, tx, key, n.StateKey); err != nil {
			return err
		} else if at.deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		if err := s.insertImported(ctx, tx, agent, n); err != nil {
			return err
		}
		r, err := find(ctx, tx, n.ID)
		if err != nil {
			return err
		}
		if err := setKeys(ctx, tx, &r, n.Keys); err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		if own == nil {
			return nil
		}
		return own.replaceHistory(ctx, tx, &r)
	})
	s.eraseSoon()
	return lease, err
}

// Named implements [sessionstore.Store].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (id sessionstore.ID, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `
			SELECT id FROM agents JOIN runtime_keys ON runtime_keys.agent = agents.key JOIN sessions ON sessions.key = session
			WHERE kind = ? AND profile = ? AND name = ?`, agent.Kind, agent.Profile, stateKey).Scan((*string)(&id))
		if errors.Is(err, sql.ErrNoRows) {
			return &sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)}
		}
		return err
	})
	return id, err
}

// importKnown updates the session at from its agent's list.
func importKnown(ctx context.Context, tx *sql.Tx, at importRecord, n sessionstore.Imported) error {
	updated := at.updated
	if !n.Updated.IsZero() {
		updated = max(updated, n.Updated.UnixMilli())
	}
	title, err := at.newTitle(ctx, tx, n)
	if err != nil {
		return err
	}
	err = exec(ctx, tx, "UPDATE sessions SET title = ?, updated = ? WHERE key = ?",
		title, updated, at.session)
	if err == nil && string(n.Meta) != at.meta {
		err = setLabel(ctx, tx, at.session, "meta", string(n.Meta))
	}
	if err == nil && at.usedSince(n) {
		err = markImported(ctx, tx, at.session)
	}
	return err
}

func markImported(ctx context.Context, tx *sql.Tx, key int64) error {
	return exec(ctx, tx, "UPDATE runtime_keys SET imported = 1 WHERE session = ?", key)
}

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. A tombstone is stored for the key that the session had
// before, unless name is "".
func (s *Store) setStateKey(ctx context.Context, tx *sql.Tx, session int64, name string) error {
	if name == "" {
		return exec(ctx, tx, "DELETE FROM runtime_keys WHERE session = ?", session)
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
		if err := s.addTombstone(ctx, tx, agent, before); err != nil {
			return err
		}
		if err := exec(ctx, tx, "UPDATE labels SET meta = '' WHERE session = ?", session); err != nil {
			return err
		}
	}
	if err := takeStateKey(ctx, tx, session, agent, name); err != nil {
		return err
	}
	err = exec(ctx, tx, "DELETE FROM tombstones WHERE agent = ? AND name = ?",
		agent, tombstoneName(name))
	if err != nil {
		return err
	}
	return exec(ctx, tx, `
		INSERT INTO runtime_keys (session, agent, name, imported) VALUES (?, ?, ?, 0)
		ON CONFLICT (session) DO UPDATE SET name = excluded.name`, session, agent, name)
}

// takeStateKey takes the state key from another session that has it.
func takeStateKey(ctx context.Context, tx *sql.Tx, session, agent int64, name string) error {
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
		return deleteRows(ctx, tx, other)
	}
	return exec(ctx, tx, "DELETE FROM runtime_keys WHERE session = ?", other.key)
}

// tombstoneName returns a state key as it is stored in a tombstone: hashed, so that a deleted
// session leaves nothing readable.
func tombstoneName(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}

// addTombstoneOf adds a tombstone for the state key of a session, if it has one.
func (s *Store) addTombstoneOf(ctx context.Context, tx *sql.Tx, session int64) error {
	var (
		agent int64
		name  string
	)
	err := tx.QueryRowContext(ctx, "SELECT agent, name FROM runtime_keys WHERE session = ?",
		session).Scan(&agent, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.addTombstone(ctx, tx, agent, name)
}

// addTombstone adds a tombstone, so that the session is not imported again, and deletes some of
// those that are too old or too many.
func (s *Store) addTombstone(ctx context.Context, tx *sql.Tx, agent int64, name string) error {
	now := s.clock()
	err := exec(ctx, tx, `
		INSERT INTO tombstones (agent, name, deleted) VALUES (?, ?, ?)
		ON CONFLICT (agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, tombstoneName(name), now)
	if err != nil {
		return err
	}
	const atOnce = 8
	return exec(ctx, tx, `
		DELETE FROM tombstones WHERE (agent, name) IN (
			SELECT agent, name FROM tombstones WHERE deleted < max(?1, coalesce(
				(SELECT deleted FROM tombstones ORDER BY deleted DESC LIMIT 1 OFFSET ?2), 0))
			ORDER BY deleted LIMIT ?3)`,
		now-sessionstore.TombstoneAge.Milliseconds(), sessionstore.MaxTombstones-1, atOnce)
}
