package sqlite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

const (
	// comparedSessions is the number of listed sessions that are compared with the store at once,
	// and importedSessions the number that are stored in one transaction.
	comparedSessions = 2000
	importedSessions = 100
)

// Import implements [sessionstore.Store]. Usually nothing is new, which it finds out without the
// write lock.
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
		var fresh []sessionstore.Imported
		err := s.read(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
			fresh, err = s.outdated(ctx, tx, agent, some)
			return err
		})
		for piece := range slices.Chunk(fresh, importedSessions) {
			n := 0
			if err == nil {
				err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
					n, err = s.importSome(ctx, tx, agent, piece)
					return err
				})
			}
			added += n
			if err == nil {
				err = pause.For(ctx, minPause)
			}
		}
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// importSome imports sessions, and returns the number of new ones.
func (s *Store) importSome(
	ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	key, err := s.owner.agentKey(ctx, tx, agent)
	if err != nil {
		return 0, err
	}
	records, err := importRecords(ctx, tx, key, namesOf(sessions))
	if err != nil {
		return 0, err
	}
	for _, n := range sessions {
		at, ok := records[n.StateKey]
		switch unknown := !ok || at.session == 0 && at.Deleted == 0; {
		case unknown && n.OnlyKnown:
		case unknown:
			added++
			// A list may have it twice.
			records[n.StateKey], err = s.insertImported(ctx, tx, agent, n, s.clock())
		default:
			err = s.importKnown(ctx, tx, key, at, n)
		}
		if err != nil {
			return 0, err
		}
	}
	return added, nil
}

// namesOf returns the state keys of sessions.
func namesOf(sessions []sessionstore.Imported) []string {
	names := make([]string, len(sessions))
	for i, n := range sessions {
		names[i] = n.StateKey
	}
	return names
}

// importRecord describes the stored session, or the tombstone, of a session that an agent lists.
type importRecord struct {
	session int64 // 0 if it is unknown
	sessionstore.Known
}

// findImported returns the record of one session.
func findImported(
	ctx context.Context, tx *sql.Tx, agent int64, stateKey string,
) (importRecord, error) {
	found, err := importRecords(ctx, tx, agent, []string{stateKey})
	return found[stateKey], err
}

// importRecords returns the records of the sessions with some state keys that the store knows.
func importRecords(
	ctx context.Context, tx *sql.Tx, agent int64, stateKeys []string,
) (map[string]importRecord, error) {
	found := make(map[string]importRecord, len(stateKeys))
	err := each(ctx, tx, `
		SELECT name, sessions.key, created, updated, title, coalesce(meta, ''), coalesce(renamed, 0),
			NOT imported AND turns = 0 AND last = 0, listed, cwd, real_cwd
		FROM json_each(?1) CROSS JOIN runtime_keys ON runtime_keys.agent = ?2 AND name = CAST(unhex(value) AS TEXT)
		JOIN sessions ON sessions.key = runtime_keys.session
		LEFT JOIN labels ON labels.session = sessions.key`,
		[]any{asJSON(asHex(stateKeys)), agent}, func(rows *sql.Rows) error {
			var (
				name string
				at   importRecord
			)
			err := rows.Scan(&name, &at.session, &at.Created, &at.Updated, &at.Title, &at.Meta,
				&at.Renamed, &at.Unused, &at.Listed, &at.Cwd, &at.RealCwd)
			found[name] = at
			return err
		})
	if err != nil {
		return nil, err
	}
	hashed := make(map[string]string, len(stateKeys))
	for _, stateKey := range stateKeys {
		hashed[hex.EncodeToString(tombstoneName(stateKey))] = stateKey
	}
	err = each(ctx, tx, `
		SELECT lower(hex(name)), deleted FROM tombstones
		WHERE agent = ?2 AND name IN (SELECT unhex(value) FROM json_each(?1))`,
		[]any{asJSON(slices.Collect(maps.Keys(hashed))), agent}, func(rows *sql.Rows) error {
			var (
				name string
				at   importRecord
			)
			err := rows.Scan(&name, &at.Deleted)
			found[hashed[name]] = at
			return err
		})
	return found, err
}

// outdated returns the sessions whose stored data differs from the list.
func (s *Store) outdated(
	ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported,
) ([]sessionstore.Imported, error) {
	agents, err := s.owner.agents(ctx, tx, agent)
	if err != nil || len(agents) == 0 {
		return sessions, err
	}
	names := namesOf(sessions)
	var fresh []sessionstore.Imported
	for key := range agents {
		records, err := importRecords(ctx, tx, key, names)
		if err != nil {
			return nil, err
		}
		for _, n := range sessions {
			at := records[n.StateKey]
			title, err := at.newTitle(ctx, tx, n)
			if err != nil {
				return nil, err
			}
			unknown := at.session == 0 && at.Deleted == 0
			if unknown && n.OnlyKnown {
				continue
			}
			if title != at.Title || unknown || at.Outdated(n, s.clock()) {
				fresh = append(fresh, n)
			}
		}
	}
	return fresh, nil
}

// newTitle returns the session's title once n is imported. An unused session gets its title with
// its first prompt.
func (at importRecord) newTitle(
	ctx context.Context, tx *sql.Tx, n sessionstore.Imported,
) (string, error) {
	if at.session == 0 || !at.MayRetitle(n) {
		return at.Title, nil
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
	return n.NewTitle(at.Title, slices.Collect(sessionstore.Unpack(first))), nil
}

// insertImported stores a new session that an agent knows, and has listed at the given time, 0 for
// not at all.
func (s *Store) insertImported(
	ctx context.Context, tx *sql.Tx, agent sessionstore.Agent, n sessionstore.Imported, listed int64,
) (at importRecord, err error) {
	at.Known = sessionstore.Known{Updated: s.clock(), Title: sessionstore.CleanTitle(n.Title),
		Meta: string(n.Meta), Listed: listed, Cwd: n.Keys.Roots.Cwd().String()}
	if !n.Updated.IsZero() {
		at.Updated = n.Updated.UnixMilli()
	}
	at.Created = at.Updated
	_, at.session, err = s.insert(ctx, tx, sessionstore.NewSession{
		ID: n.ID, Agent: agent, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, at.Updated)
	if err == nil {
		err = exec(ctx, tx, "UPDATE runtime_keys SET imported = 1, listed = ? WHERE session = ?",
			listed, at.session)
	}
	if err == nil && n.Archived {
		err = setLabel(ctx, tx, at.session, "archived", 1)
	}
	if err == nil && len(n.Meta) > 0 {
		err = setLabel(ctx, tx, at.session, "meta", string(n.Meta))
	}
	return at, err
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
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		key, err := s.owner.agentKey(ctx, tx, agent)
		if err != nil {
			return err
		}
		if at, err := findImported(ctx, tx, key, n.StateKey); err != nil {
			return err
		} else if at.Deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		if _, err := s.insertImported(ctx, tx, agent, n, 0); err != nil {
			return err
		}
		r, err := s.owner.find(ctx, tx, n.ID)
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
			SELECT id FROM agents JOIN runtime_keys ON runtime_keys.agent = agents.key
			JOIN sessions ON sessions.key = session
			WHERE kind = ? AND profile = ? AND name = ?`,
			s.owner.stored(agent.Kind), agent.Profile, stateKey).Scan((*string)(&id))
		if errors.Is(err, sql.ErrNoRows) {
			return &sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)}
		}
		return err
	})
	return plainID(id), err
}

// importKnown updates a session, or its tombstone, from its agent's list.
func (s *Store) importKnown(
	ctx context.Context, tx *sql.Tx, agent int64, at importRecord, n sessionstore.Imported,
) error {
	if at.Deleted != 0 {
		return exec(ctx, tx, "UPDATE tombstones SET deleted = ? WHERE agent = ? AND name = ?",
			s.clock(), agent, tombstoneName(n.StateKey))
	}
	updated := at.Updated
	if !n.Updated.IsZero() {
		updated = max(updated, n.Updated.UnixMilli())
	}
	title, err := at.newTitle(ctx, tx, n)
	if err == nil {
		err = exec(ctx, tx, "UPDATE sessions SET title = ?, updated = ? WHERE key = ?",
			title, updated, at.session)
	}
	if err == nil && string(n.Meta) != at.Meta {
		err = setLabel(ctx, tx, at.session, "meta", string(n.Meta))
	}
	if err == nil && at.UsedSince(n) {
		err = exec(ctx, tx, "UPDATE runtime_keys SET imported = 1 WHERE session = ?", at.session)
	}
	if listed := at.ListedAs(n, s.clock()); err == nil && listed != at.Listed {
		err = exec(ctx, tx, "UPDATE runtime_keys SET listed = ? WHERE session = ?",
			listed, at.session)
	}
	return err
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
func (s *medium) addTombstoneOf(ctx context.Context, tx *sql.Tx, session int64) error {
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
func (s *medium) addTombstone(ctx context.Context, tx *sql.Tx, agent int64, name string) error {
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
		DELETE FROM tombstones WHERE agent = ?1 AND name IN (
			SELECT name FROM tombstones WHERE agent = ?1 AND deleted < max(?2, coalesce((
				SELECT deleted FROM tombstones WHERE agent = ?1 ORDER BY deleted DESC LIMIT 1 OFFSET ?3), 0))
			ORDER BY deleted LIMIT ?4)`, agent,
		now-sessionstore.TombstoneAge.Milliseconds(), sessionstore.MaxTombstones-1, atOnce)
}
