package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// applyRetention prunes what Options.Retention allows, whoever it belongs to. It is called when the
// store is closed, since nobody waits for an answer then. A program that is killed leaves it to the
// next one, and so does an error.
func (s *Store) applyRetention() {
	pool := s.opened()
	if s.retention <= 0 || pool == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rules.RetentionTimeout)
	defer cancel()
	var at int64
	err := pool.QueryRow(ctx, "UPDATE meta SET pruned = "+now+
		" WHERE pruned < "+now+" - $1::bigint RETURNING pruned", rules.RetentionInterval.Milliseconds()).Scan(&at)
	if err != nil { // it is not due, usually
		return
	}
	owners, err := s.Owners(ctx)
	for _, owner := range owners {
		if err == nil {
			_, err = (&Store{database: s.database, owner: owner}).Prune(ctx, sessionstore.PruneQuery{UnusedBefore: rules.Time(at).Add(-s.retention)})
		}
	}
}

// everyone is what a transaction names to row-level security in place of an owner, so that it sees
// the names of all of them.
const everyone = "SELECT set_config('acp_agent.owner', 'every owner', true)"

// Owners implements [sessionstore.Shared].
func (s *Store) Owners(ctx context.Context) (owners []string, err error) {
	err = s.use(ctx, func(pool *pgxpool.Pool) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, everyone); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, "SELECT DISTINCT owner FROM agents ORDER BY owner")
			if err == nil {
				owners, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
	})
	return owners, err
}
