package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A role that is no superuser reads everything, as pg_dump does, and other roles as much as before.
func TestBackupRole(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	create(t, s, "one")
	create(t, s.For("ana"), "two")

	schema := schemaOf(t, address)
	admin := connect(t, strings.Replace(address, "acp@", "admin@", 1))
	_, err := admin.Exec(t.Context(), "CREATE ROLE acp_backup LOGIN")
	require.NoError(t, err)
	script, err := os.ReadFile("../../docs/operating/deploy/backup.sql")
	require.NoError(t, err)
	owner := connect(t, address)
	for range 2 {
		_, err = owner.Exec(t.Context(), strings.ReplaceAll(string(script), "acp_agent", schema))
		require.NoError(t, err)
	}

	count := func(user, table string) (n int) {
		c := connect(t, strings.Replace(address, "acp@", user+"@", 1))
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		return n
	}
	for _, table := range []string{"sessions", "agents"} {
		require.Equal(t, count("admin", table), count("acp_backup", table), table)
		require.Zero(t, count("acp", table), table)
	}
	require.Equal(t, 2, count("acp_backup", "sessions"))
	_, err = connect(t, strings.Replace(address, "acp@", "acp_backup@", 1)).
		Exec(t.Context(), "DELETE FROM sessions")
	require.Error(t, err)
	h, err := s.Check(t.Context())
	require.NoError(t, err)
	require.True(t, h.RowSecurity)
}
