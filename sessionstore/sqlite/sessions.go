package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Create implements [sessionstore.Store].
func (s *Store) Create(ctx context.Context, n sessionstore.NewSession) (sessionstore.Lease, error) {
	if err := n.Keys.Validate(); err != nil {
		return sessionstore.Lease{}, err
	}
	var lease sessionstore.Lease
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		lease, _, err = s.insert(ctx, tx, n, s.clock(), inheritance{})
		return err
	})
	return lease, err
}

// inheritance is what a fork's own row takes from its source.
type inheritance struct {
	last, turns int64
}

// insert stores a session's row and hands out its first lease. Its strand is named by the
// lease's generation, which is never used twice.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, n sessionstore.NewSession, now int64, from inheritance) (sessionstore.Lease, int64, error) {
	none := sessionstore.Lease{}
	var taken int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM sessions WHERE id = ?", string(n.ID)).Scan(&taken)
	if err == nil {
		return none, 0, &sessionstore.ExistsError{ID: n.ID}
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
	values = append(values, n.Title, now, now, generation, from.turns, 0, generation, from.last)
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

// saveState stores the runtime's own value, an empty one is none, and what the runtime calls the session.
func (s *Store) saveState(ctx context.Context, tx *sql.Tx, session int64, state []byte, name string) error {
	if err := s.nameSession(ctx, tx, session, name); err != nil {
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
			if _, _, got, err = scanRecord(rows, knownKeys{}); err != nil {
				return err
			}
		}
		got.Agent, got.State, got.StateKey = agent, state, name
		return rows.Err()
	})
	return got, err
}

// recordColumns are what scanRecord reads.
const recordColumns = "key, agent, id, cwd, dirs, real_cwd, real_dirs, title, created, updated, generation, turns"

// scanRecord reads a session's record, but for its agent and state, with its key and its agent's.
func scanRecord(rows *sql.Rows, known knownKeys) (key, agent int64, r sessionstore.Session, err error) {
	var (
		texts            keyTexts
		created, updated int64
	)
	err = rows.Scan(&key, &agent, (*string)(&r.ID), &texts[0], &texts[1], &texts[2], &texts[3],
		&r.Title, &created, &updated, &r.Generation, &r.Turns)
	if err != nil {
		return 0, 0, r, err
	}
	r.Keys, err = known.parse(texts)
	r.Created, r.Updated = stored(created), stored(updated)
	return key, agent, r, err
}
