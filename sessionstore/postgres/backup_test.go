package postgres_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/dirtest"
)

// A role that is no superuser reads everything, as pg_dump does, and other roles as much as before.
func TestBackupRole(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	create(t, s, "one")
	create(t, s.For("ana"), "two")

	schema := schemaOf(t, address)
	admin := connectAs(t, address, "admin")
	execute(t, admin, "CREATE ROLE acp_backup LOGIN")
	script := dirtest.Read(t, "../../docs/operating/deploy/backup.sql")
	owner := connect(t, address)
	for range 2 {
		execute(t, owner, strings.ReplaceAll(script, "acp_agent", schema))
	}

	count := func(user, table string) (n int) {
		c := connectAs(t, address, user)
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
		return n
	}
	for _, table := range []string{"sessions", "agents"} {
		require.Equal(t, count("admin", table), count("acp_backup", table), table)
		require.Zero(t, count("acp", table), table)
	}
	require.Equal(t, 2, count("acp_backup", "sessions"))
	_, err := connectAs(t, address, "acp_backup").Exec(t.Context(), "DELETE FROM sessions")
	require.Error(t, err)
	h, err := s.Check(t.Context())
	require.NoError(t, err)
	require.True(t, h.RowSecurity)
}
