package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// Import implements [sessionstore.Importer]. Usually nothing is new, which it finds out without a
// lock.
func (s *Store) Import(
	ctx context.Context, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	compare := func(some []sessionstore.Imported) (outdated []sessionstore.Imported, err error) {
		err = s.read(ctx, func(tx *transaction) error {
			agents, err := tx.agents(agent)
			if err != nil {
				return err
			}
			rows := &importRows{tx: tx, lock: unlocked}
			if len(agents) == 1 {
				rows.agent = agents[0]
			}
			outdated, err = rules.Outdated(rows, some)
			return err
		})
		return outdated, err
	}
	return rules.Import(agent, sessions, compare,
		func(piece []sessionstore.Imported) (added int, err error) {
			err = s.write(ctx, func(tx *transaction) error {
				key, err := tx.agentKey(agent, true)
				if err != nil {
					return err
				}
				rows := &importRows{tx: tx, agent: key, lock: forWrite}
				added, err = rules.Store(rows, piece)
				return err
			})
			return added, err
		})
}

// importRows are the [rules.Rows] of an agent, which is locked for a write.
type importRows struct {
	tx       *transaction
	agent    int64  // 0 if there is none yet
	lock     string // of the sessions
	sessions map[string]importedRow
}

// importedRow is the session with a state key.
type importedRow struct {
	id     sessionstore.ID
	strand int64
}

// Now implements [rules.Rows].
func (r *importRows) Now() (at int64, err error) {
	err = r.tx.QueryRow(r.tx.ctx, "SELECT "+now).Scan(&at)
	return at, err
}

// Known implements [rules.Rows].
func (r *importRows) Known(stateKeys []string) (map[string]rules.Known, error) {
	hashes := make([][]byte, len(stateKeys))
	names := make(map[[sha256.Size]byte]string, len(stateKeys))
	for i, name := range stateKeys {
		hash := rules.Tombstone(name)
		hashes[i], names[hash] = hash[:], name
	}
	found := make(map[string]rules.Known, len(stateKeys))
	r.sessions = make(map[string]importedRow, len(stateKeys))
	rows, err := r.tx.query(`
		SELECT state_key, id, strand, created, updated, title, meta, renamed,
			NOT imported AND turns = 0 AND last = 0, listed, cwd, real_cwd
		FROM sessions WHERE owner = $1 AND agent = $2 AND state_key_hash = ANY($3)`+r.lock,
		r.agent, hashes)
	if err != nil {
		return nil, err
	}
	var (
		key, meta []byte
		one       importedRow
		k         = rules.Known{Stored: true}
	)
	_, err = pgx.ForEachRow(rows, []any{&key, (*string)(&one.id), &one.strand, &k.Created, &k.Updated,
		&k.Title, &meta, &k.Renamed, &k.Unused, &k.Listed, &k.Cwd, &k.RealCwd}, func() error {
		k.Meta = string(meta)
		found[string(key)], r.sessions[string(key)] = k, one
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err = r.tx.query("SELECT name, deleted FROM tombstones "+
		"WHERE owner = $1 AND agent = $2 AND name = ANY($3)", r.agent, hashes)
	if err != nil {
		return nil, err
	}
	var (
		name    []byte
		deleted int64
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &deleted}, func() error {
		found[names[[sha256.Size]byte(name)]] = rules.Known{Deleted: deleted}
		return nil
	})
	return found, err
}

// First implements [rules.Rows].
func (r *importRows) First(stateKeys []string) (map[string][]sessionstore.Update, error) {
	names := make(map[int64]string, len(stateKeys))
	for _, name := range stateKeys {
		names[r.sessions[name].strand] = name
	}
	rows, err := r.tx.query("SELECT strand, body FROM segments "+
		"WHERE owner = $1 AND strand = ANY($2) AND seq = 1", slices.Collect(maps.Keys(names)))
	if err != nil {
		return nil, err
	}
	first := make(map[string][]sessionstore.Update)
	var (
		strand int64
		body   []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&strand, &body}, func() error {
		first[names[strand]] = slices.Collect(sessionstore.Unpack(body))
		return nil
	})
	return first, err
}

// Insert implements [rules.Rows].
func (r *importRows) Insert(n sessionstore.Imported, k rules.Known) error {
	inserted, err := r.tx.insert(r.agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: k.Title, State: n.State, StateKey: n.StateKey,
	}, &k.Updated)
	if err != nil {
		return err
	}
	r.sessions[n.StateKey] = importedRow{id: n.ID, strand: inserted.strand}
	return r.tx.set(n.ID, "imported = true, listed = $3, archived = $4, meta = $5",
		k.Listed, n.Archived, []byte(k.Meta))
}

// Update implements [rules.Rows].
func (r *importRows) Update(n sessionstore.Imported, before, after rules.Known) error {
	if after.Deleted != 0 {
		return r.tx.exec("UPDATE tombstones SET deleted = $4 "+
			"WHERE owner = $1 AND agent = $2 AND name = sha256($3)",
			r.agent, []byte(n.StateKey), after.Deleted)
	}
	return r.tx.set(r.sessions[n.StateKey].id,
		"title = $3, updated = $4, meta = $5, imported = imported OR $6, listed = $7",
		after.Title, after.Updated, []byte(after.Meta), before.Unused && !after.Unused, after.Listed)
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
		key, err := tx.agentKey(agent, true)
		if err != nil {
			return err
		}
		rows := &importRows{tx: tx, agent: key, lock: unlocked}
		known, err := rows.Known([]string{n.StateKey})
		if err != nil {
			return err
		}
		if known[n.StateKey].Deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		at, err := rows.Now()
		if err == nil {
			err = rows.Insert(n, rules.Adopted(n, at))
		}
		if err != nil {
			return err
		}
		r, err := tx.find(n.ID, forWrite)
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
		return tx.store(r)
	})
	return lease, err
}

// Named implements [sessionstore.Importer].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (id sessionstore.ID, err error) {
	err = s.read(ctx, func(tx *transaction) error {
		agents, err := tx.agents(agent)
		if err != nil {
			return err
		}
		err = tx.row("SELECT id FROM sessions "+
			"WHERE owner = $1 AND agent = ANY($2) AND state_key_hash = sha256($3)",
			agents, []byte(stateKey)).Scan((*string)(&id))
		if errors.Is(err, pgx.ErrNoRows) {
			return &sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)}
		}
		return err
	})
	return id, err
}

// Retain implements [sessionstore.Importer].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	var cwds []string // nil for all
	for _, dir := range l.Cwds {
		cwds = append(cwds, dir.String())
	}
	err = s.write(ctx, func(tx *transaction) error {
		n = 0
		agents, err := tx.agents(agent)
		if err != nil || len(agents) != 1 {
			return err
		}
		if err := tx.lockAgent(agents[0]); err != nil {
			return err
		}
		rows, err := tx.query(`
			SELECT id, state_key FROM sessions WHERE owner = $1 AND agent = $2
				AND listed BETWEEN 1 AND $3::bigint - 1 AND ($4::text[] IS NULL OR cwd = ANY($4))`,
			agents[0], l.Asked.UnixMilli(), cwds)
		if err != nil {
			return err
		}
		var (
			missing []string
			id      string
			key     []byte
		)
		_, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error {
			if !l.StateKeys[string(key)] {
				missing = append(missing, id)
			}
			return nil
		})
		for _, id := range missing {
			if err == nil {
				err = tx.retire(sessionstore.ID(id))
			}
		}
		n = len(missing)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// retire deletes a session that its agent has deleted, if it was never opened, renamed or archived
// here. It marks others. The caller has locked the agent.
func (tx *transaction) retire(id sessionstore.ID) error {
	one, err := tx.oneStanding("id = $2", string(id))
	switch {
	case err != nil || one == nil:
		return err
	case one.Retires():
		return tx.deleteRows(id, one.strand)
	}
	return tx.set(id, "listed = -abs(listed)")
}

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. The caller has locked the agent.
func (tx *transaction) setStateKey(r *row, name string) error {
	if name == "" {
		return tx.set(r.id, noStateKey)
	}
	present, err := tx.oneStanding("id = $2", string(r.id))
	if err != nil {
		return err
	}
	change := rules.ChangeKey(present.name, name)
	if change.Remember != "" {
		err = tx.addTombstone(r.agent, change.Remember)
	}
	if err == nil && change.Reset {
		err = tx.set(r.id, "listed = 0, meta = ''")
	}
	if err == nil {
		err = tx.takeStateKey(r, name)
	}
	if err == nil {
		err = tx.exec("DELETE FROM tombstones "+
			"WHERE owner = $1 AND agent = $2 AND name = sha256($3)", r.agent, []byte(name))
	}
	if err != nil {
		return err
	}
	return tx.set(r.id, "state_key = $3", []byte(name))
}

// noStateKey sets the columns of a session that has no state key.
const noStateKey = "state_key = NULL, imported = false, listed = 0"

// takeStateKey takes the state key from another session that has it.
func (tx *transaction) takeStateKey(r *row, name string) error {
	other, err := tx.oneStanding("agent = $2 AND state_key_hash = sha256($3) AND id <> $4",
		r.agent, []byte(name), string(r.id))
	switch {
	case err != nil || other == nil:
		return err
	case other.NeverUsed():
		return tx.deleteRows(other.id, other.strand)
	}
	return tx.set(other.id, noStateKey)
}

// standing is a session that may be deleted because of its agent.
type standing struct {
	id     sessionstore.ID
	strand int64
	name   string // its state key, or ""
	rules.Standing
}

// standings returns and locks the owner's sessions that match a condition, whose arguments are $2
// and later.
func (tx *transaction) standings(condition string, args ...any) (found []standing, err error) {
	rows, err := tx.query(`
		SELECT id, strand, state_key, imported, turns, last, archived OR renamed, generation <> born,
			updated
		FROM sessions WHERE owner = $1 AND `+condition+forWrite, args...)
	if err != nil {
		return nil, err
	}
	var (
		one standing
		key []byte
	)
	_, err = pgx.ForEachRow(rows, []any{(*string)(&one.id), &one.strand, &key, &one.Imported,
		&one.Turns, &one.Last, &one.Labelled, &one.Opened, &one.Updated}, func() error {
		one.name = string(key)
		found = append(found, one)
		return nil
	})
	return found, err
}

// oneStanding returns and locks the session that matches a condition, or nil.
func (tx *transaction) oneStanding(condition string, args ...any) (*standing, error) {
	found, err := tx.standings(condition, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// rules returns what decides about s, or nil.
func (s *standing) rules() *rules.Standing {
	if s == nil {
		return nil
	}
	return &s.Standing
}

// addTombstone adds a tombstone, so that the session is not imported again, and deletes some of
// those that are too old or too many.
func (tx *transaction) addTombstone(agent int64, name string) error {
	err := tx.exec(`
		INSERT INTO tombstones (owner, agent, name, deleted) VALUES ($1, $2, sha256($3), `+now+`)
		ON CONFLICT (owner, agent, name) DO UPDATE SET deleted = excluded.deleted`,
		agent, []byte(name))
	if err != nil {
		return err
	}
	return tx.exec(`
		DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name IN (
			SELECT name FROM tombstones WHERE owner = $1 AND agent = $2
				AND deleted < greatest(`+now+` - $3::bigint, (SELECT deleted FROM tombstones
					WHERE owner = $1 AND agent = $2 ORDER BY deleted DESC LIMIT 1 OFFSET $4))
			ORDER BY deleted LIMIT $5)`, agent, sessionstore.TombstoneAge.Milliseconds(),
		sessionstore.MaxTombstones-1, rules.TombstonesAtOnce)
}
