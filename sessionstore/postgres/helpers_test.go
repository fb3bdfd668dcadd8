package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore/postgres"
)

func open(t *testing.T, address string) *postgres.Store {
	t.Helper()
	s, err := postgres.New(postgres.Options{Address: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// waitsForLock waits until a connection of a store waits for a lock.
func waitsForLock(t *testing.T, address string) {
	t.Helper()
	admin := connectAs(t, address, "admin")
	require.Eventually(t, func() (waits bool) {
		err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_activity "+
			"WHERE application_name = 'acp-agent' AND wait_event_type = 'Lock')").Scan(&waits)
		return err == nil && waits
	}, time.Minute, time.Millisecond)
}

func schemaOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Query().Get("search_path")
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// connectAs connects as another user.
func connectAs(t *testing.T, address, user string) *pgx.Conn {
	t.Helper()
	return connect(t, strings.Replace(address, "acp@", user+"@", 1))
}

func execute(t *testing.T, conn *pgx.Conn, statement string, arguments ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement, arguments...)
	require.NoError(t, err)
}
