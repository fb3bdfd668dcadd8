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
)

// importedSessions is the number of listed sessions that are stored in one transaction.
const importedSessions = 100

// Import implements [sessionstore.Store]. Usually nothing is new, which it finds out without a
// lock.
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
	var fresh []sessionstore.Imported
	err = s.read(ctx, func(tx pgx.Tx) error {
		fresh, err = s.outdated(ctx, tx, agent, sessions)
		return err
	})
	for some := range slices.Chunk(fresh, importedSessions) {
		if err != nil {
			break
		}
		n := 0
		err = s.write(ctx, func(tx pgx.Tx) error {
			n, err = s.importSome(ctx, tx, agent, some)
			return err
		})
		if err == nil {
			added += n
		}
	}
	return added, err
}

// importSome imports sessions, and returns the number of new ones.
func (s *Store) importSome(
	ctx context.Context, tx pgx.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (added int, err error) {
	key, err := s.agentKey(ctx, tx, agent, true)
	if err != nil {
		return 0, err
	}
	records, at, err := s.importRecords(ctx, tx, key, sessions, forWrite)
	if err != nil {
		return 0, err
	}
	titles, err := s.newTitles(ctx, tx, records, sessions)
	if err != nil {
		return 0, err
	}
	for _, n := range sessions {
		known, ok := records[n.StateKey]
		switch {
		case ok:
			err = s.importKnown(ctx, tx, key, known, n, at, known.newTitle(n, titles))
		case !n.OnlyKnown:
			added++
			// A list may have it twice.
			records[n.StateKey], err = s.insertImported(ctx, tx, key, n, at, at)
		}
		if err != nil {
			return 0, err
		}
	}
	return added, nil
}

// importRecord describes the stored session, or the tombstone, of a session that an agent lists.
type importRecord struct {
	id     sessionstore.ID // "" if it was deleted
	strand int64
	sessionstore.Known
}

// importRecords returns the records of the sessions that the store knows, by state key, and the
// time. It locks them as lock says.
func (s *Store) importRecords(
	ctx context.Context, tx pgx.Tx, agent int64, sessions []sessionstore.Imported, lock string,
) (found map[string]importRecord, at int64, err error) {
	hashes := make([][]byte, len(sessions))
	keys := make(map[[sha256.Size]byte]string, len(sessions))
	for i, n := range sessions {
		hash := sha256.Sum256([]byte(n.StateKey))
		hashes[i], keys[hash] = hash[:], n.StateKey
	}
	found = make(map[string]importRecord, len(sessions))
	rows, err := tx.Query(ctx, `
		SELECT state_key, id, strand, created, updated, title, meta, renamed,
			NOT imported AND turns = 0 AND last = 0, listed, cwd, real_cwd
		FROM sessions WHERE owner = $1 AND agent = $2 AND state_key_hash = ANY($3)`+lock,
		s.owner, agent, hashes)
	if err == nil {
		var (
			key, meta []byte
			k         importRecord
		)
		_, err = pgx.ForEachRow(rows, []any{&key, (*string)(&k.id), &k.strand, &k.Created, &k.Updated,
			&k.Title, &meta, &k.Renamed, &k.Unused, &k.Listed, &k.Cwd, &k.RealCwd}, func() error {
			k.Meta = string(meta)
			found[string(key)] = k
			return nil
		})
	}
	if err != nil {
		return nil, 0, err
	}
	rows, err = tx.Query(ctx, "SELECT name, deleted FROM tombstones "+
		"WHERE owner = $1 AND agent = $2 AND name = ANY($3)",
		s.owner, agent, hashes)
	if err == nil {
		var (
			name    []byte
			deleted int64
		)
		_, err = pgx.ForEachRow(rows, []any{&name, &deleted}, func() error {
			k := importRecord{}
			k.Deleted = deleted
			found[keys[[sha256.Size]byte(name)]] = k
			return nil
		})
	}
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT "+now).Scan(&at)
	}
	return found, at, err
}

// outdated returns the sessions of which the store does not have the latest.
func (s *Store) outdated(
	ctx context.Context, tx pgx.Tx, agent sessionstore.Agent, sessions []sessionstore.Imported,
) (fresh []sessionstore.Imported, err error) {
	agents, err := s.agents(ctx, tx, agent)
	if err != nil || len(agents) != 1 {
		return sessions, err
	}
	records, at, err := s.importRecords(ctx, tx, agents[0], sessions, unlocked)
	if err != nil {
		return nil, err
	}
	titles, err := s.newTitles(ctx, tx, records, sessions)
	if err != nil {
		return nil, err
	}
	for _, n := range sessions {
		known, ok := records[n.StateKey]
		if !ok && n.OnlyKnown {
			continue
		}
		if !ok || known.newTitle(n, titles) != known.Title || known.Outdated(n, at) {
			fresh = append(fresh, n)
		}
	}
	return fresh, nil
}

// newTitles returns the titles of the sessions once these are imported, by state key, as far as that
// depends on their histories.
func (s *Store) newTitles(
	ctx context.Context, tx pgx.Tx, records map[string]importRecord, sessions []sessionstore.Imported,
) (map[string]string, error) {
	listed := make(map[int64]sessionstore.Imported)
	for _, n := range sessions {
		if known := records[n.StateKey]; known.mayRetitle(n) {
			listed[known.strand] = n
		}
	}
	if len(listed) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, "SELECT strand, body FROM segments "+
		"WHERE owner = $1 AND strand = ANY($2) AND seq = 1", s.owner, slices.Collect(maps.Keys(listed)))
	if err != nil {
		return nil, err
	}
	titles := make(map[string]string)
	var (
		strand int64
		body   []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&strand, &body}, func() error {
		n, first := listed[strand], slices.Collect(sessionstore.Unpack(body))
		titles[n.StateKey] = n.NewTitle(records[n.StateKey].Title, first)
		return nil
	})
	return titles, err
}

func (k importRecord) mayRetitle(n sessionstore.Imported) bool { return k.id != "" && k.MayRetitle(n) }

// newTitle returns the session's title once n is imported. titles are those of newTitles.
func (k importRecord) newTitle(n sessionstore.Imported, titles map[string]string) string {
	if !k.mayRetitle(n) {
		return k.Title
	}
	if title, ok := titles[n.StateKey]; ok {
		return title
	}
	return n.NewTitle(k.Title, nil)
}

// insertImported stores a new session that an agent knows, and has listed at a time, 0 for not at
// all. The caller has locked the agent.
func (s *Store) insertImported(
	ctx context.Context, tx pgx.Tx, agent int64, n sessionstore.Imported, at, listed int64,
) (known importRecord, err error) {
	known = importRecord{id: n.ID}
	known.Updated, known.Title, known.Listed = at, sessionstore.CleanTitle(n.Title), listed
	known.Meta, known.Cwd = string(n.Meta), n.Keys.Roots.Cwd().String()
	if !n.Updated.IsZero() {
		known.Updated = n.Updated.UnixMilli()
	}
	known.Created = known.Updated
	r, err := s.insert(ctx, tx, agent, sessionstore.NewSession{
		ID: n.ID, Keys: n.Keys, Title: n.Title, State: n.State, StateKey: n.StateKey,
	}, &known.Updated)
	if err != nil {
		return known, err
	}
	known.strand = r.strand
	return known, s.exec(ctx, tx, n.ID, "imported = true, listed = $3, archived = $4, meta = $5",
		listed, n.Archived, append([]byte{}, n.Meta...))
}

// importKnown updates a session, which is locked and gets a title, or its tombstone, from its agent's
// list.
func (s *Store) importKnown(
	ctx context.Context, tx pgx.Tx, agent int64, known importRecord, n sessionstore.Imported, at int64,
	title string,
) error {
	if known.Deleted != 0 {
		_, err := tx.Exec(ctx, "UPDATE tombstones SET deleted = $4 "+
			"WHERE owner = $1 AND agent = $2 AND name = sha256($3)",
			s.owner, agent, []byte(n.StateKey), at)
		return err
	}
	updated := known.Updated
	if !n.Updated.IsZero() {
		updated = n.Updated.UnixMilli()
	}
	return s.exec(ctx, tx, known.id,
		"title = $3, updated = greatest(updated, $4), meta = $5, imported = imported OR $6, listed = $7",
		title, updated, append([]byte{}, n.Meta...), known.UsedSince(n), known.ListedAs(n, at))
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
	err = s.write(ctx, func(tx pgx.Tx) error {
		key, err := s.agentKey(ctx, tx, agent, true)
		if err != nil {
			return err
		}
		records, at, err := s.importRecords(ctx, tx, key, []sessionstore.Imported{n}, unlocked)
		if err != nil {
			return err
		}
		if records[n.StateKey].Deleted != 0 {
			return &sessionstore.NotFoundError{ID: n.ID}
		}
		if _, err := s.insertImported(ctx, tx, key, n, at, 0); err != nil {
			return err
		}
		r, err := s.find(ctx, tx, n.ID, forWrite)
		if err == nil {
			err = s.setKeys(ctx, tx, r, n.Keys)
		}
		if err == nil && own != nil {
			err = own.replaceHistory(ctx, tx, r)
		}
		if err != nil {
			return err
		}
		lease = sessionstore.Lease{ID: n.ID, Generation: r.generation}
		return s.store(ctx, tx, r)
	})
	return lease, err
}

// Named implements [sessionstore.Store].
func (s *Store) Named(
	ctx context.Context, agent sessionstore.Agent, stateKey string,
) (id sessionstore.ID, err error) {
	err = s.read(ctx, func(tx pgx.Tx) error {
		agents, err := s.agents(ctx, tx, agent)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, "SELECT id FROM sessions "+
			"WHERE owner = $1 AND agent = ANY($2) AND state_key_hash = sha256($3)",
			s.owner, agents, []byte(stateKey)).Scan((*string)(&id))
		if errors.Is(err, pgx.ErrNoRows) {
			return &sessionstore.NotFoundError{ID: sessionstore.ID(stateKey)}
		}
		return err
	})
	return id, err
}

// Retain implements [sessionstore.Store].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	var cwds []string // nil for all
	for _, dir := range l.Cwds {
		cwds = append(cwds, dir.String())
	}
	err = s.write(ctx, func(tx pgx.Tx) error {
		n = 0
		agents, err := s.agents(ctx, tx, agent)
		if err != nil || len(agents) != 1 {
			return err
		}
		if err := s.lockAgent(ctx, tx, agents[0]); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			SELECT id, state_key FROM sessions WHERE owner = $1 AND agent = $2
				AND listed BETWEEN 1 AND $3::bigint - 1 AND ($4::text[] IS NULL OR cwd = ANY($4))`,
			s.owner, agents[0], l.Asked.UnixMilli(), cwds)
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
				err = s.retire(ctx, tx, sessionstore.ID(id))
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
func (s *Store) retire(ctx context.Context, tx pgx.Tx, id sessionstore.ID) error {
	r, err := s.find(ctx, tx, id, forWrite)
	if err != nil {
		return err
	}
	var untouched bool
	err = tx.QueryRow(ctx, `
		SELECT generation = born AND turns = 0 AND last = 0 AND NOT renamed AND NOT archived AND imported
		FROM sessions WHERE owner = $1 AND id = $2`, s.owner, string(id)).Scan(&untouched)
	switch {
	case err != nil:
		return err
	case untouched:
		return s.deleteRows(ctx, tx, id, r.strand)
	}
	return s.exec(ctx, tx, id, "listed = -abs(listed)")
}

// setStateKey stores the state key of a session. Another session with this key loses it, and is
// deleted if it was imported and never used. A tombstone is stored for the key that the session had
// before, unless name is "". The caller has locked the agent.
func (s *Store) setStateKey(ctx context.Context, tx pgx.Tx, r *row, name string) error {
	if name == "" {
		return s.exec(ctx, tx, r.id, noStateKey)
	}
	if err := s.addTombstoneOf(ctx, tx, r, name); err != nil {
		return err
	}
	if err := s.takeStateKey(ctx, tx, r, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "DELETE FROM tombstones "+
		"WHERE owner = $1 AND agent = $2 AND name = sha256($3)",
		s.owner, r.agent, []byte(name))
	if err != nil {
		return err
	}
	return s.exec(ctx, tx, r.id, `state_key = $3,
		listed = CASE WHEN state_key = $3 THEN listed ELSE 0 END,
		meta = CASE WHEN state_key <> $3 THEN '' ELSE meta END`, []byte(name))
}

// noStateKey sets the columns of a session that has no state key.
const noStateKey = "state_key = NULL, imported = false, listed = 0"

// takeStateKey takes the state key from another session that has it.
func (s *Store) takeStateKey(ctx context.Context, tx pgx.Tx, r *row, name string) error {
	var (
		other  string
		strand int64
		unused bool
	)
	err := tx.QueryRow(ctx, `
		SELECT id, strand, imported AND turns = 0 AND last = 0 FROM sessions
		WHERE owner = $1 AND agent = $2 AND state_key_hash = sha256($3) AND id <> $4
		FOR NO KEY UPDATE`, s.owner, r.agent, []byte(name), string(r.id)).Scan(&other, &strand, &unused)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	case unused:
		return s.deleteRows(ctx, tx, sessionstore.ID(other), strand)
	}
	return s.exec(ctx, tx, sessionstore.ID(other), noStateKey)
}

// addTombstoneOf adds a tombstone for the state key of a session, if it has one other than name, so
// that the session is not imported again. It deletes some of those that are too old or too many.
func (s *Store) addTombstoneOf(ctx context.Context, tx pgx.Tx, r *row, name string) error {
	added, err := tx.Exec(ctx, `
		INSERT INTO tombstones (owner, agent, name, deleted)
		SELECT owner, agent, sha256(state_key), `+now+` FROM sessions
		WHERE owner = $1 AND id = $2 AND state_key <> $3
		ON CONFLICT (owner, agent, name) DO UPDATE SET deleted = excluded.deleted`,
		s.owner, string(r.id), []byte(name))
	if err != nil || added.RowsAffected() == 0 {
		return err
	}
	const atOnce = 8
	_, err = tx.Exec(ctx, `
		DELETE FROM tombstones WHERE owner = $1 AND agent = $2 AND name IN (
			SELECT name FROM tombstones WHERE owner = $1 AND agent = $2
				AND deleted < greatest(`+now+` - $3::bigint, (SELECT deleted FROM tombstones
					WHERE owner = $1 AND agent = $2 ORDER BY deleted DESC LIMIT 1 OFFSET $4))
			ORDER BY deleted LIMIT $5)`, s.owner, r.agent,
		sessionstore.TombstoneAge.Milliseconds(), sessionstore.MaxTombstones-1, atOnce)
	return err
}
