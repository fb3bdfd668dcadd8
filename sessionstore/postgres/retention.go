package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/internal/rules"
)

// applyRetention deletes the sessions of all owners that are older than Options.Retention. It is
// called when the store is closed, because nobody waits for an answer then. If the program is
// killed or an error occurs, the next program does it.
func (s *Store) applyRetention() {
	pool := s.opened()
	if s.retention <= 0 || pool == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rules.RetentionTimeout)
	defer cancel()
	var at int64
	err := pool.QueryRow(ctx, "UPDATE meta SET pruned = "+now+
		" WHERE pruned < "+now+" - $1::bigint RETURNING pruned",
		rules.RetentionInterval.Milliseconds()).Scan(&at)
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

// everyone makes row-level security show a transaction the names of all owners.
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
