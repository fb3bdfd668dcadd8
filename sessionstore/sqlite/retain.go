package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/acp-agent/acp-agent/internal/pause"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Retain implements [sessionstore.Importer].
func (s *Store) Retain(
	ctx context.Context, agent sessionstore.Agent, l sessionstore.Listed,
) (n int, err error) {
	var missing []int64
	err = s.read(ctx, func(tx *transaction) (err error) {
		missing, err = s.owner.missingSessions(tx, agent, l)
		return err
	})
	for some := range slices.Chunk(missing, pruneSessions) {
		if err == nil {
			err = s.write(ctx, func(tx *transaction) error {
				for _, session := range some {
					if err := retire(tx, session); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err == nil {
			n += len(some)
			err = pause.For(ctx, minPause)
		}
	}
	if len(missing) > 0 {
		s.eraseSoon()
	}
	return n, err
}

// missingSessions returns the sessions that the agent listed before and that are not in l.
func (o owner) missingSessions(
	tx *transaction, agent sessionstore.Agent, l sessionstore.Listed,
) (missing []int64, err error) {
	agents, err := o.agents(tx, agent)
	if err != nil {
		return nil, err
	}
	var cwds []string
	for _, dir := range l.Cwds {
		cwds = append(cwds, dir.String())
	}
	for key := range agents {
		err := tx.each(`
			SELECT sessions.key, name FROM runtime_keys JOIN sessions ON sessions.key = session
			WHERE runtime_keys.agent = ?1 AND listed BETWEEN 1 AND ?2 - 1
				AND (?3 = 'null' OR cwd IN (SELECT value FROM json_each(?3)))`,
			[]any{key, l.Asked.UnixMilli(), asJSON(cwds)}, func(rows *sql.Rows) error {
				var (
					session int64
					name    string
				)
				err := rows.Scan(&session, &name)
				if !l.StateKeys[name] {
					missing = append(missing, session)
				}
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// retire deletes a session that its agent has deleted, if it was never opened, renamed or archived
// here. It marks others.
func retire(tx *transaction, session int64) error {
	s, err := oneStanding(tx, "key = ?", session)
	switch {
	case err != nil || s == nil:
		return err
	case s.Retires():
		return deleteRows(tx, s.row)
	}
	return tx.exec(
		"UPDATE runtime_keys SET listed = -listed WHERE session = ? AND listed > 0", session)
}
