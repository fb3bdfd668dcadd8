package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/acp-agent/acp-agent/internal/text/secret"
	"github.com/acp-agent/acp-agent/sessionstore/internal/core"
)

// Health describes a store's database for an operator.
type Health struct {
	// Server is the version of PostgreSQL, Schema that of the tables.
	Server string
	Schema int
	// RoundTrip is the time of a query that does nothing.
	RoundTrip time.Duration
	// ReadOnly reports whether nothing can be written, as on a replica.
	ReadOnly bool
	// RowSecurity reports whether row-level security applies to the user.
	RowSecurity bool
	User        string
	// Protected reports whether the connection does not leave the machine, or is encrypted to a
	// server whose certificate was verified.
	Protected bool
}

// Check opens the database, creates the tables if they are missing, and describes it.
func (s *Store) Check(ctx context.Context) (h Health, err error) {
	d := s.database
	h.Schema, h.Protected = core.Version, d.protected() // others are refused
	err = s.core.Use(ctx, func() error {
		return use(ctx, d.pool.Load(), func(c *conn) error {
			err := c.row(ctx, "SELECT current_setting('server_version'), "+
				"current_setting('transaction_read_only')::boolean, "+
				"row_security_active('sessions'), current_user",
				&h.Server, &h.ReadOnly, &h.RowSecurity, &h.User)
			start := time.Now()
			if err == nil {
				err = c.server.Ping(ctx)
			}
			h.RoundTrip = time.Since(start)
			return err
		})
	})
	return h, err
}

// protected reports whether all connections that the address permits are as [Health] says.
func (d *database) protected() bool {
	c := d.config
	ways := append([]*pgconn.FallbackConfig{
		{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig},
	}, c.Fallbacks...)
	return !slices.ContainsFunc(ways, func(w *pgconn.FallbackConfig) bool {
		verified := w.TLSConfig != nil &&
			(!w.TLSConfig.InsecureSkipVerify || w.TLSConfig.VerifyPeerCertificate != nil)
		network, _ := pgconn.NetworkAddress(w.Host, w.Port)
		return !verified && network != "unix" && !secret.IsLoopback(w.Host)
	})
}
