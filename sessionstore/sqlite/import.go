package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Import implements [sessionstore.Importer]. Usually nothing is new, which it finds out without the
// write lock.
func (s *Store) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	compare := func(some []sessionstore.Imported) (outdated []sessionstore.Imported, err error) {
		err = s.read(ctx, func(tx *transaction) error {
			agents, err := s.owner.agents(tx, agent)
			if err != nil {
				return err
			}
			rows := &importRows{store: s, tx: tx}
			if len(agents) == 1 {
				rows.key = slices.Collect(maps.Keys(agents))[0]
			}
			outdated, err = rules.Outdated(rows, some)
			return err
		})
		return outdated, err
	}
	return rules.Import(agent, sessions, compare,
		func(piece []sessionstore.Imported) (added int, err error) {
			err = s.write(ctx, func(tx *transaction) error {
				key, err := s.owner.agentKey(tx, agent)
				if err != nil {
					return err
				}
				rows := &importRows{store: s, tx: tx, key: key}
				added, err = rules.Store(rows, piece)
				return err
			})
			return added, errors.Join(err, pause.For(ctx, minPause))
		})
}

// importRows are the [rules.Rows] of an agent.
type importRows struct {
	store    *Store
	tx       *transaction
	key      int64            // of the agent, 0 if there is none yet
	sessions map[string]int64 // the keys of known sessions, by state key
}

// Now implements [rules.Rows].
func (r *importRows) Now() (int64, error) { return r.store.clock(), nil }

// Known implements [rules.Rows].
func (r *importRows) Known(
	stateKeys []string,
) (map[string]rules.Known, error) {
	found := make(map[string]rules.Known, len(stateKeys))
	r.sessions = make(map[string]int64, len(stateKeys))
	err := r.tx.each(`
		SELECT name, sessions.key, created, updated, title, coalesce(meta, ''), coalesce(renamed, 0),
			NOT imported AND turns = 0 AND last = 0, listed, cwd, real_cwd
		FROM json_each(?1) CROSS JOIN runtime_keys ON runtime_keys.agent = ?2 AND name = CAST(unhex(value) AS TEXT)
		JOIN sessions ON sessions.key = runtime_keys.session
		LEFT JOIN labels ON labels.session = sessions.key`,
		[]any{asJSON(asHex(stateKeys)), r.key}, func(rows *sql.Rows) error {
			var (
				name    string
				session int64
			)
			k := rules.Known{Stored: true}
			err := rows.Scan(&name, &session, &k.Created, &k.Updated, &k.Title, &k.Meta,
				&k.Renamed, &k.Unused, &k.Listed, &k.Cwd, &k.RealCwd)
			found[name], r.sessions[name] = k, session
			return err
		})
	if err != nil {
		return nil, err
	}
	hashed := make(map[string]string, len(stateKeys))
	for _, stateKey := range stateKeys {
		hashed[hex.EncodeToString(tombstoneName(stateKey))] = stateKey
	}
	err = r.tx.each(`
		SELECT lower(hex(name)), deleted FROM tombstones
		WHERE agent = ?2 AND name IN (SELECT unhex(value) FROM json_each(?1))`,
		[]any{asJSON(slices.Collect(maps.Keys(hashed))), r.key}, func(rows *sql.Rows) error {
			var (
				name string
				k    rules.Known
			)
			err := rows.Scan(&name, &k.Deleted)
			found[hashed[name]] = k
			return err
		})
	return found, err
}

// First implements [rules.Rows].
func (r *importRows) First(
	stateKeys []string,
) (map[string][]sessionstore.Update, error) {
	first := make(map[string][]sessionstore.Update)
	for _, stateKey := range stateKeys {
		var body []byte
		err := r.tx.row(`
			SELECT body FROM segments WHERE strand = coalesce(
				(SELECT strand FROM inherits WHERE session = ?1 ORDER BY last LIMIT 1),
				(SELECT strand FROM sessions WHERE key = ?1))
			ORDER BY seq LIMIT 1`, r.sessions[stateKey]).Scan(&body)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		first[stateKey] = slices.Collect(sessionstore.Unpack(body))
	}
	return first, nil
}

// Insert implements [rules.Rows]. It does little besides writing rows, because the first list of an
// agent may have thousands of sessions. There is no tombstone.
func (r *importRows) Insert(n sessionstore.Imported, k rules.Known) error {
	_, session, err := r.store.insertRow(r.tx, r.key, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: k.Title}, k.Updated, rules.Ordinary)
	if err == nil && r.sessions[n.StateKey] != 0 {
		err = r.store.takeStateKey(r.tx, session, r.key, n.StateKey)
	}
	r.sessions[n.StateKey] = session
	if err == nil {
		err = r.tx.exec(`
			INSERT INTO runtime_keys (session, agent, name, imported, listed) VALUES (?, ?, ?, 1, ?)`,
			session, r.key, n.StateKey, k.Listed)
	}
	if err == nil && len(n.State) > 0 {
		err = r.tx.exec("INSERT INTO runtime_states (session, body) VALUES (?, ?)",
			session, n.State)
	}
	if err == nil && (n.Archived || k.Meta != "") {
		err = r.tx.exec("INSERT INTO labels (session, archived, meta) VALUES (?, ?, ?)",
			session, n.Archived, k.Meta)
	}
	return err
}

// Update implements [rules.Rows].
func (r *importRows) Update(
	n sessionstore.Imported, before, after rules.Known,
) error {
	if after.Deleted != 0 {
		return r.tx.exec("UPDATE tombstones SET deleted = ? WHERE agent = ? AND name = ?",
			after.Deleted, r.key, tombstoneName(n.StateKey))
	}
	session := r.sessions[n.StateKey]
	err := r.tx.exec("UPDATE sessions SET title = ?, updated = ? WHERE key = ?",
		after.Title, after.Updated, session)
	if err == nil && after.Meta != before.Meta {
		err = setLabel(r.tx, session, "meta", after.Meta)
	}
	if err == nil {
		err = r.tx.exec("UPDATE runtime_keys SET imported = max(imported, ?), listed = ? WHERE session = ?",
			before.Unused && !after.Unused, after.Listed, session)
	}
	return err
}

// Adopt implements [sessionstore.Importer].
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
		key, err := s.owner.agentKey(tx, agent)
		if err != nil {
			return err
		}
		rows := &importRows{store: s, tx: tx, key: key}
		known, err := rows.Known([]string{n.StateKey})
		if err != nil {
			return err
		}
		if known[n.StateKey].Deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		if err := rows.Insert(n, rules.Adopted(n, s.clock())); err != nil {
			return err
		}
		r, err := s.owner.find(tx, n.ID)
		if err != nil {
			return err
		}
		if err := setKeys(tx, &r, n.Keys); err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		if own == nil {
			return nil
		}
		return own.appendTo(tx, &r)
	})
	s.eraseSoon()
	return lease, err
}

// Named implements [sessionstore.Importer].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (id sessionstore.ID, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		err := tx.row(`
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

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used.
func (s *Store) setStateKey(tx *transaction, session int64, name string) error {
	if name == "" {
		return tx.exec("DELETE FROM runtime_keys WHERE session = ?", session)
	}
	var (
		agent  int64
		before string
	)
	err := tx.row(`
		SELECT sessions.agent, coalesce(name, '') FROM sessions LEFT JOIN runtime_keys ON session = sessions.key
		WHERE sessions.key = ?`, session).Scan(&agent, &before)
	if err != nil {
		return err
	}
	change := rules.ChangeKey(before, name)
	if change.Remember != "" {
		err = s.addTombstone(tx, agent, change.Remember)
	}
	if err == nil && change.Reset {
		err = tx.exec("UPDATE labels SET meta = '' WHERE session = ?", session)
	}
	if err == nil {
		err = s.takeStateKey(tx, session, agent, name)
	}
	if err == nil {
		err = tx.exec("DELETE FROM tombstones WHERE agent = ? AND name = ?",
			agent, tombstoneName(name))
	}
	if err != nil {
		return err
	}
	return tx.exec(`
		INSERT INTO runtime_keys (session, agent, name, imported) VALUES (?, ?, ?, 0)
		ON CONFLICT (session) DO UPDATE SET name = excluded.name`, session, agent, name)
}

// takeStateKey takes the state key from another session that has it.
func (s *Store) takeStateKey(tx *transaction, session, agent int64, name string) error {
	others, err := standings(tx, "runtime_keys.agent = ? AND name = ? AND sessions.key <> ?",
		agent, name, session)
	for _, other := range others { // one, if any
		switch {
		case err != nil:
		case other.NeverUsed():
			err = deleteRows(tx, other.row)
			s.eraseSoon()
		default:
			err = tx.exec("DELETE FROM runtime_keys WHERE session = ?", other.key)
		}
	}
	return err
}

// standing is a session that may be deleted because of its agent.
type standing struct {
	row  // only key and strand are set
	name string
	rules.Standing
}

// standings returns the sessions with a state key that match a condition.
func standings(tx *transaction, condition string, args ...any) (found []standing, err error) {
	err = tx.each(`
		SELECT key, strand, coalesce(name, ''), coalesce(imported, 0), turns, last,
			coalesce(archived OR renamed, 0), generation <> strand, updated
		FROM sessions LEFT JOIN runtime_keys ON runtime_keys.session = key
		LEFT JOIN labels ON labels.session = key WHERE `+condition,
		args, func(rows *sql.Rows) error {
			var s standing
			err := rows.Scan(&s.key, &s.strand, &s.name, &s.Imported, &s.Turns, &s.Last,
				&s.Labelled, &s.Opened, &s.Updated)
			found = append(found, s)
			return err
		})
	return found, err
}

func tombstoneName(stateKey string) []byte {
	name := rules.Tombstone(stateKey)
	return name[:]
}

// addTombstoneOf adds a tombstone for the state key of a session, if it has one.
func (s *medium) addTombstoneOf(tx *transaction, session int64) error {
	var (
		agent int64
		name  string
	)
	err := tx.row("SELECT agent, name FROM runtime_keys WHERE session = ?",
		session).Scan(&agent, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.addTombstone(tx, agent, name)
}

// addTombstone adds a tombstone, so that the session is not imported again, and deletes some of
// those that are too old or too many.
func (s *medium) addTombstone(tx *transaction, agent int64, name string) error {
	now := s.clock()
	err := tx.exec(`
		INSERT INTO tombstones (agent, name, deleted) VALUES (?, ?, ?)
		ON CONFLICT (agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, tombstoneName(name), now)
	if err != nil {
		return err
	}
	return tx.exec(`
		DELETE FROM tombstones WHERE agent = ?1 AND name IN (
			SELECT name FROM tombstones WHERE agent = ?1 AND deleted < max(?2, coalesce((
				SELECT deleted FROM tombstones WHERE agent = ?1 ORDER BY deleted DESC LIMIT 1 OFFSET ?3), 0))
			ORDER BY deleted LIMIT ?4)`, agent,
		now-sessionstore.TombstoneAge.Milliseconds(), sessionstore.MaxTombstones-1,
		rules.TombstonesAtOnce)
}
