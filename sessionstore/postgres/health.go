package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Health is what an operator should know about a store's database.
type Health struct {
	// Server is the version of PostgreSQL, Schema that of the tables.
	Server string
	Schema int
	// RoundTrip is the time of a query that does nothing.
	RoundTrip time.Duration
	// ReadOnly says that nothing can be written, as on a replica.
	ReadOnly bool
	// RowSecurity says that row-level security applies to the user.
	RowSecurity bool
	User        string
}

// Check opens the database, which it migrates if necessary, and describes it.
func (s *Store) Check(ctx context.Context) (h Health, err error) {
	err = s.use(ctx, func(pool *pgxpool.Pool) error {
		err := pool.QueryRow(ctx, "SELECT current_setting('server_version'), version, "+
			"current_setting('transaction_read_only')::boolean, row_security_active('sessions'), "+
			"current_user FROM meta").
			Scan(&h.Server, &h.Schema, &h.ReadOnly, &h.RowSecurity, &h.User)
		start := time.Now()
		if err == nil {
			err = pool.Ping(ctx)
		}
		h.RoundTrip = time.Since(start)
		return err
	})
	return h, err
}
