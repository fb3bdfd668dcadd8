package sqlite

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// renameAgents gives the sessions of each agent to the agent that renamed returns for it, if that
// differs. It does not lock a file without such agents.
func renameAgents(
	ctx context.Context, conn *sql.Conn, renamed func(sessionstore.Agent) sessionstore.Agent,
) error {
	now := func(stored sessionstore.Agent) sessionstore.Agent {
		prefix, kind := split(stored.Kind)
		a := renamed(sessionstore.Agent{Kind: kind, Profile: stored.Profile})
		a.Kind = prefix + a.Kind
		return a
	}
	outdated := func(tx *sql.Tx) (map[int64]sessionstore.Agent, error) {
		agents, err := agentsWhere(ctx, tx, "TRUE")
		maps.DeleteFunc(agents, func(_ int64, a sessionstore.Agent) bool { return now(a) == a })
		return agents, err
	}
	n, err := inTransaction(ctx, conn, &sql.TxOptions{ReadOnly: true},
		func(tx *sql.Tx) (int, error) {
			agents, err := outdated(tx)
			return len(agents), err
		})
	if err != nil || n == 0 {
		return err
	}
	_, err = inTransaction(ctx, conn, nil, func(tx *sql.Tx) (int, error) {
		agents, err := outdated(tx)
		if err != nil {
			return 0, err
		}
		for _, from := range slices.Sorted(maps.Keys(agents)) {
			if err := renameAgent(ctx, tx, from, now(agents[from])); err != nil {
				return 0, err
			}
		}
		return len(agents), nil
	})
	return err
}

// renameAgent gives everything that belongs to the agent with the given key to another agent.
func renameAgent(ctx context.Context, tx *sql.Tx, from int64, to sessionstore.Agent) error {
	known, err := agentsWhere(ctx, tx, "kind = ? AND profile = ?", to.Kind, to.Profile)
	if err != nil {
		return err
	}
	for key := range known {
		return mergeAgents(ctx, tx, from, key)
	}
	return exec(ctx, tx, "UPDATE agents SET kind = ?, profile = ? WHERE key = ?",
		to.Kind, to.Profile, from)
}

// mergeAgents gives everything that belongs to the agent from to the agent to.
func mergeAgents(ctx context.Context, tx *sql.Tx, from, to int64) error {
	if err := separateNamesakes(ctx, tx, from, to); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE runtime_keys SET agent = ?2 WHERE agent = ?1",
		"UPDATE sessions SET agent = ?2 WHERE agent = ?1",
		`INSERT INTO tombstones (agent, name, deleted)
			SELECT ?2, name, deleted FROM tombstones WHERE agent = ?1
			ON CONFLICT (agent, name) DO UPDATE SET deleted = max(deleted, excluded.deleted)`,
		"DELETE FROM tombstones WHERE agent = ?1",
		"DELETE FROM agents WHERE key = ?1",
	} {
		if err := exec(ctx, tx, statement, from, to); err != nil {
			return err
		}
	}
	return reconcileTombstones(ctx, tx, to)
}

// keyed is a session with its agent's own id.
type keyed struct {
	row
	name   string
	unused bool // it was imported, and nothing has been done with it
}

// keyedColumns are the columns of a keyed session in sessions, runtime_keys and labels.
const keyedColumns = `sessions.key, strand, name,
	imported AND turns = 0 AND last = 0 AND NOT coalesce(archived OR renamed, 0)`

// readKeyed returns the sessions that a query for keyedColumns finds.
func readKeyed(ctx context.Context, tx *sql.Tx, query string, args ...any) (all []keyed, err error) {
	err = each(ctx, tx, query, args, func(rows *sql.Rows) error {
		var k keyed
		err := rows.Scan(&k.key, &k.strand, &k.name, &k.unused)
		all = append(all, k)
		return err
	})
	return all, err
}

// separateNamesakes handles ids that sessions of both agents have. The session that was used last
// keeps the id. The other one loses it, or is deleted if it was never used.
func separateNamesakes(ctx context.Context, tx *sql.Tx, from, to int64) error {
	all, err := readKeyed(ctx, tx, "SELECT "+keyedColumns+` AS unused
		FROM runtime_keys AS keys JOIN sessions ON sessions.key = keys.session
		LEFT JOIN labels ON labels.session = sessions.key
		WHERE keys.agent IN (?1, ?2) AND (SELECT count(*) FROM runtime_keys AS other
			WHERE other.agent IN (?1, ?2) AND other.name = keys.name) = 2
		ORDER BY name, unused, updated DESC, keys.agent = ?1`, from, to)
	if err != nil {
		return err
	}
	for i := 1; i < len(all); i += 2 {
		loser := all[i]
		if loser.unused {
			err = deleteRows(ctx, tx, loser.row)
		} else {
			err = exec(ctx, tx, "DELETE FROM runtime_keys WHERE session = ?", loser.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reconcileTombstones looks at an agent's sessions that have a tombstone. If a session was used, it
// deletes the tombstone, otherwise the session.
func reconcileTombstones(ctx context.Context, tx *sql.Tx, agent int64) error {
	all, err := readKeyed(ctx, tx, "SELECT "+keyedColumns+`
		FROM runtime_keys AS keys JOIN sessions ON sessions.key = keys.session
		LEFT JOIN labels ON labels.session = sessions.key
		WHERE keys.agent = ?1 AND EXISTS (SELECT 1 FROM tombstones WHERE agent = ?1)`, agent)
	if err != nil {
		return err
	}
	for _, k := range all {
		at, err := findImported(ctx, tx, agent, k.name)
		switch {
		case err != nil || at.Deleted == 0:
		case k.unused:
			err = deleteRows(ctx, tx, k.row)
		default:
			err = exec(ctx, tx, "DELETE FROM tombstones WHERE agent = ? AND name = ?", agent,
				tombstoneName(k.name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
