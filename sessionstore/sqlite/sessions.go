package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// row is the part of a session's row that writes need.
type row struct {
	key, generation, turns int64
	open                   int64 // the first segment of the running turn, 0 between turns
	branch                 int64 // where its own segments are (column strand)
	last                   int64 // the number of its last segment
	cwd                    string
}

func find(ctx context.Context, tx *sql.Tx, id sessionstore.ID) (r row, err error) {
	err = tx.QueryRowContext(ctx, "SELECT key, generation, turns, open, strand, last, cwd FROM sessions WHERE id = ?", string(id)).
		Scan(&r.key, &r.generation, &r.turns, &r.open, &r.branch, &r.last, &r.cwd)
	if errors.Is(err, sql.ErrNoRows) {
		err = &sessionstore.NotFoundError{ID: id}
	}
	return r, err
}

// findLeased finds the session of l, which must be its newest lease.
func findLeased(ctx context.Context, tx *sql.Tx, l sessionstore.Lease) (row, error) {
	r, err := find(ctx, tx, l.ID)
	if err == nil && r.generation != l.Generation {
		err = &sessionstore.FencedError{ID: l.ID, Held: l.Generation, Current: r.generation}
	}
	return r, err
}

// update changes the session of l in one transaction.
func (s *Store) update(ctx context.Context, l sessionstore.Lease, change func(context.Context, *sql.Tx, row) error) error {
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := findLeased(ctx, tx, l)
		if err != nil {
			return err
		}
		return change(ctx, tx, r)
	})
}

// store writes the columns of the row that turns and segments change.
func (r row) store(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "UPDATE sessions SET turns = ?, open = ?, strand = ?, last = ? WHERE key = ?",
		r.turns, r.open, r.branch, r.last, r.key)
	return err
}

// Create implements [sessionstore.Store].
func (s *Store) Create(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if err := n.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		lease, _, err = s.insert(ctx, tx, n, s.clock(), finishedPart{})
		return err
	})
	return lease, err
}

// insert stores a session and returns its first lease and its key. finished is what it inherits. Its branch has the number of the
// lease's generation, which is never used twice.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, n sessionstore.NewSession, now int64, finished finishedPart) (sessionstore.Lease, int64, error) {
	none := sessionstore.Lease{}
	var taken int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM sessions WHERE id = ?", string(n.ID)).Scan(&taken)
	if err == nil {
		return none, 0, sessionstore.ErrExists
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return none, 0, err
	}
	agent, err := agentKey(ctx, tx, n.Agent)
	if err != nil {
		return none, 0, err
	}
	generation, err := nextGeneration(ctx, tx)
	if err != nil {
		return none, 0, err
	}
	values := append([]any{string(n.ID), agent}, columnsOf(n.Keys).values()...)
	values = append(values, n.Title, now, now, generation, finished.turns, 0, generation, finished.last)
	result, err := tx.ExecContext(ctx, `
		INSERT INTO sessions (id, agent, cwd, dirs, real_cwd, real_dirs, cwd_hash, dirs_hash, real_cwd_hash, real_dirs_hash,
			title, created, updated, generation, turns, open, strand, last)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values...)
	if err != nil {
		return none, 0, err
	}
	key, err := result.LastInsertId()
	if err != nil {
		return none, 0, err
	}
	lease := sessionstore.Lease{ID: n.ID, Generation: generation}
	if len(n.State) == 0 && n.StateKey == "" {
		return lease, key, nil
	}
	return lease, key, s.saveState(ctx, tx, key, n.State, n.StateKey)
}

func agentKey(ctx context.Context, tx *sql.Tx, a sessionstore.Agent) (key int64, err error) {
	find := func() error {
		return tx.QueryRowContext(ctx, "SELECT key FROM agents WHERE kind = ? AND profile = ?", a.Kind, a.Profile).Scan(&key)
	}
	if err = find(); errors.Is(err, sql.ErrNoRows) {
		if _, err = tx.ExecContext(ctx, "INSERT INTO agents (kind, profile) VALUES (?, ?)", a.Kind, a.Profile); err == nil {
			err = find()
		}
	}
	return key, err
}

func nextGeneration(ctx context.Context, tx *sql.Tx) (generation int64, err error) {
	err = tx.QueryRowContext(ctx, "UPDATE meta SET generations = generations + 1 RETURNING generations").Scan(&generation)
	return generation, err
}

// Get implements [sessionstore.Store].
func (s *Store) Get(ctx context.Context, id sessionstore.ID) (got sessionstore.Session, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var (
			state []byte
			name  string
		)
		err := tx.QueryRowContext(ctx, `
			SELECT agents.kind, agents.profile, runtime_states.body, coalesce(runtime_keys.name, '')
			FROM sessions JOIN agents ON agents.key = sessions.agent
			LEFT JOIN runtime_states ON runtime_states.session = sessions.key
			LEFT JOIN runtime_keys ON runtime_keys.session = sessions.key
			WHERE sessions.id = ?`, string(id)).Scan(&got.Agent.Kind, &got.Agent.Profile, &state, &name)
		if errors.Is(err, sql.ErrNoRows) {
			return &sessionstore.NotFoundError{ID: id}
		}
		if err != nil {
			return err
		}
		agent := got.Agent
		rows, err := tx.QueryContext(ctx, "SELECT "+recordColumns+" FROM sessions WHERE id = ?", string(id))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if _, _, got, err = scanRecord(rows, parsedKeys{}); err != nil {
				return err
			}
		}
		got.Agent, got.State, got.StateKey = agent, state, name
		return rows.Err()
	})
	return got, err
}

// recordColumns are the columns that scanRecord reads.
const recordColumns = "key, agent, id, cwd, dirs, real_cwd, real_dirs, title, created, updated, generation, turns"

// scanRecord reads a session without its agent and state. It returns its key and that of its agent too.
func scanRecord(rows *sql.Rows, parsed parsedKeys) (key, agent int64, r sessionstore.Session, err error) {
	var (
		texts            keyTexts
		created, updated int64
	)
	err = rows.Scan(&key, &agent, (*string)(&r.ID), &texts[0], &texts[1], &texts[2], &texts[3],
		&r.Title, &created, &updated, &r.Generation, &r.Turns)
	if err != nil {
		return 0, 0, r, err
	}
	r.Keys, err = parsed.parse(texts)
	r.Created, r.Updated = timeOf(created), timeOf(updated)
	return key, agent, r, err
}

// Activate implements [sessionstore.Store].
func (s *Store) Activate(ctx context.Context, id sessionstore.ID, a sessionstore.Activation) (sessionstore.Lease, error) {
	if err := a.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	history, err := s.draftOf(id, a.History)
	if err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err = s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := find(ctx, tx, id)
		if a.Held != 0 {
			r, err = findLeased(ctx, tx, sessionstore.Lease{ID: id, Generation: a.Held})
		}
		if err != nil {
			return err
		}
		if a.Held == 0 || history != nil {
			if err := s.interruptTurn(ctx, tx, &r); err != nil {
				return err
			}
		}
		if err := setKeys(ctx, tx, &r, a.Keys); err != nil {
			return err
		}
		if a.State != nil {
			if err := s.saveState(ctx, tx, r.key, a.State, a.StateKey); err != nil {
				return err
			}
		}
		if history != nil {
			if err := history.replaceHistory(ctx, tx, &r); err != nil {
				return err
			}
		}
		lease = sessionstore.Lease{ID: id, Generation: r.generation}
		return r.store(ctx, tx)
	})
	return lease, err
}

// setKeys stores new roots and a new generation.
func setKeys(ctx context.Context, tx *sql.Tx, r *row, k sessionstore.Keys) error {
	cwd, err := workspace.ParseDir(r.cwd)
	if err != nil {
		return &damageError{err}
	}
	if r.generation, err = nextGeneration(ctx, tx); err != nil {
		return err
	}
	values := append(columnsOf(k.WithCwd(cwd)).values(), r.generation, r.key)
	_, err = tx.ExecContext(ctx, `
		UPDATE sessions SET cwd = ?, dirs = ?, real_cwd = ?, real_dirs = ?,
			cwd_hash = ?, dirs_hash = ?, real_cwd_hash = ?, real_dirs_hash = ?, generation = ?
		WHERE key = ?`, values...)
	return err
}

// SetTitle implements [sessionstore.Store].
func (s *Store) SetTitle(ctx context.Context, l sessionstore.Lease, title string) error {
	return s.update(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		_, err := tx.ExecContext(ctx, "UPDATE sessions SET title = ? WHERE key = ?", title, r.key)
		return err
	})
}

// SaveState implements [sessionstore.Store].
func (s *Store) SaveState(ctx context.Context, l sessionstore.Lease, state []byte, key string) error {
	return s.update(ctx, l, func(ctx context.Context, tx *sql.Tx, r row) error {
		return s.saveState(ctx, tx, r.key, state, key)
	})
}

// saveState stores the state of a session, which it removes if empty, and its state key.
func (s *Store) saveState(ctx context.Context, tx *sql.Tx, session int64, state []byte, stateKey string) error {
	if err := s.setStateKey(ctx, tx, session, stateKey); err != nil {
		return err
	}
	if len(state) == 0 {
		_, err := tx.ExecContext(ctx, "DELETE FROM runtime_states WHERE session = ?", session)
		return err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO runtime_states (session, body) VALUES (?, ?)
		ON CONFLICT (session) DO UPDATE SET body = excluded.body`, session, state)
	return err
}

// Check implements [sessionstore.Store].
func (s *Store) Check(ctx context.Context, l sessionstore.Lease) error {
	return s.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := findLeased(ctx, tx, l)
		return err
	})
}

// Fork implements [sessionstore.Store]. The history is shared, not copied, so the time does not depend on its length.
func (s *Store) Fork(ctx context.Context, source sessionstore.ID, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if err := n.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		from, err := find(ctx, tx, source)
		if err != nil {
			return err
		}
		n, err := withSourceDefaults(ctx, tx, n, from)
		if err != nil {
			return err
		}
		finished := from.finished()
		spans, err := from.spans(ctx, tx, finished.last)
		if err != nil {
			return err
		}
		var key int64
		if lease, key, err = s.insert(ctx, tx, n, s.clock(), finished); err != nil {
			return err
		}
		return inherit(ctx, tx, key, from, spans, finished)
	})
	return lease, err
}

// finishedPart is the extent of a session's history up to its last finished turn.
type finishedPart struct {
	last  int64 // segment
	turns int64
}

func (r row) finished() finishedPart {
	if r.open != 0 {
		return finishedPart{last: r.open - 1, turns: r.turns - 1}
	}
	return finishedPart{last: r.last, turns: r.turns}
}

// withSourceDefaults returns n with the title and state of the source where n has none.
func withSourceDefaults(ctx context.Context, tx *sql.Tx, n sessionstore.NewSession, from row) (sessionstore.NewSession, error) {
	if n.Title == "" {
		if err := tx.QueryRowContext(ctx, "SELECT title FROM sessions WHERE key = ?", from.key).Scan(&n.Title); err != nil {
			return n, err
		}
	}
	if n.State == nil {
		err := tx.QueryRowContext(ctx, "SELECT body FROM runtime_states WHERE session = ?", from.key).Scan(&n.State)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return n, err
		}
	}
	return n, nil
}

// inherit gives the session with the given key the history, finished turns and states of its source.
func inherit(ctx context.Context, tx *sql.Tx, key int64, from row, spans []span, finished finishedPart) error {
	for _, s := range spans {
		_, err := tx.ExecContext(ctx, "INSERT INTO inherits (session, last, strand) VALUES (?, ?, ?)", key, s.last, s.branch)
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO turns (session, number, started, ended, reason)
		SELECT ?, number, started, ended, reason FROM turns WHERE session = ? AND number <= ?`, key, from.key, finished.turns)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO states (session, kind, body) SELECT ?, kind, body FROM states WHERE session = ?",
		key, from.key)
	return err
}

// Delete implements [sessionstore.Store]. It deletes the rows in one transaction, then erases what they left in the files.
func (s *Store) Delete(ctx context.Context, id sessionstore.ID) error {
	deleted := false
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		deleted = false
		r, err := find(ctx, tx, id)
		if errors.As(err, new(*sessionstore.NotFoundError)) {
			return nil
		}
		if err != nil {
			return err
		}
		deleted = true
		return s.deleteSession(ctx, tx, r)
	})
	if err != nil || !deleted {
		return err
	}
	return s.erase(ctx)
}

// deleteSession deletes a session, and remembers its state key so that it is not imported again.
func (s *Store) deleteSession(ctx context.Context, tx *sql.Tx, r row) error {
	if err := s.addTombstoneOf(ctx, tx, r.key); err != nil {
		return err
	}
	return deleteRows(ctx, tx, r)
}

// deleteRows deletes a session and what only it needs.
func deleteRows(ctx context.Context, tx *sql.Tx, r row) error {
	spans, err := inheritedSpans(ctx, tx, r.key)
	if err != nil {
		return err
	}
	if err := deleteDrafts(ctx, tx, "session = ?", r.key); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE key = ?", r.key); err != nil {
		return err
	}
	return deleteUnusedSegments(ctx, tx, append(spans, span{branch: r.branch}))
}

// keyColumns are the columns of a session's keys.
type keyColumns struct {
	cwd, dirs, realCwd, realDirs column
}

// column is a value that sessions are found by. The indexes contain its hash.
type column struct {
	text string
	hash int64
}

func columnsOf(k sessionstore.Keys) keyColumns {
	return keyColumns{
		cwd:      dirColumn(k.Roots.Cwd()),
		dirs:     dirsColumn(k.Roots.Additional()),
		realCwd:  dirColumn(k.Real[0]),
		realDirs: realColumn(k.Real[1:]),
	}
}

// values returns the columns in the order cwd, dirs, real_cwd, real_dirs, then their hashes.
func (k keyColumns) values() []any {
	return []any{
		k.cwd.text, k.dirs.text, k.realCwd.text, k.realDirs.text,
		k.cwd.hash, k.dirs.hash, k.realCwd.hash, k.realDirs.hash,
	}
}

func columnOf(text string) column {
	h := fnv.New64a()
	h.Write([]byte(text))
	return column{text, int64(h.Sum64())}
}

func dirColumn(dir workspace.Dir) column { return columnOf(dir.String()) }

func dirsColumn(list workspace.Dirs) column { return listColumn(list.Strings()) }

func realColumn(list []workspace.Dir) column {
	paths := make([]string, len(list))
	for i, dir := range list {
		paths[i] = dir.String()
	}
	return listColumn(paths)
}

// listColumn returns the column of a list, as JSON. Lists are compared by this text.
func listColumn(paths []string) column {
	text, err := json.Marshal(paths)
	if err != nil {
		panic("sqlite: strings cannot be encoded: " + err.Error())
	}
	return columnOf(string(text))
}

// keyTexts are the columns cwd, dirs, real_cwd and real_dirs of a session.
type keyTexts [4]string

// parsedKeys caches parsed keys, since many sessions of a page have the same.
type parsedKeys map[keyTexts]sessionstore.Keys

// parse returns keys that belong to the caller.
func (p parsedKeys) parse(texts keyTexts) (sessionstore.Keys, error) {
	k, ok := p[texts]
	if !ok {
		var err error
		if k, err = parseKeys(texts); err != nil {
			return k, &damageError{err}
		}
		p[texts] = k
	}
	return sessionstore.Keys{Roots: k.Roots, Real: slices.Clone(k.Real)}, nil
}

// parseKeys is the inverse of [columnsOf].
func parseKeys(texts keyTexts) (sessionstore.Keys, error) {
	var k sessionstore.Keys
	cwd, err := workspace.ParseDir(texts[0])
	if err != nil {
		return k, err
	}
	var paths, realPaths []string
	if err := json.Unmarshal([]byte(texts[1]), &paths); err != nil {
		return k, err
	}
	if err := json.Unmarshal([]byte(texts[3]), &realPaths); err != nil {
		return k, err
	}
	additional, err := workspace.ParseDirs(paths)
	if err != nil {
		return k, err
	}
	k.Roots = workspace.RootsFrom(cwd, additional)
	k.Real = make([]workspace.Dir, 0, 1+len(realPaths))
	for _, path := range append([]string{texts[2]}, realPaths...) {
		dir, err := workspace.ParseDir(path)
		if err != nil {
			return k, err
		}
		k.Real = append(k.Real, dir)
	}
	return k, k.Validate()
}
