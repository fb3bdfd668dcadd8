package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/sessionstore/postgres"
)

func TestRetention(t *testing.T) {
	address := server.Address(t)
	conn := connect(t, address)
	old := func(s sessionstore.Store, owner, id string) {
		create(t, s, id)
		_, err := conn.Exec(t.Context(), "SELECT set_config('acp_agent.owner', 'owner ' || $1, false)", owner)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "UPDATE sessions SET updated = 1 WHERE id = $1", id)
		require.NoError(t, err)
	}
	closed := func(owner string) (kept []string) {
		s, err := postgres.New(postgres.Options{Address: address, Retention: time.Hour})
		require.NoError(t, err)
		page, err := s.For(owner).List(t.Context(), sessionstore.Query{})
		require.NoError(t, err)
		for _, session := range page.Sessions {
			kept = append(kept, string(session.ID))
		}
		require.NoError(t, s.Close())
		return kept
	}
	s := open(t, address)
	for _, owner := range []string{"", "ann"} {
		old(s.For(owner), owner, "old")
		create(t, s.For(owner), "new")
		lease := create(t, s.For(owner), "used")
		_, err := s.For(owner).BeginTurn(t.Context(), lease, sessionstore.Turn{})
		require.NoError(t, err)
	}
	require.Len(t, closed(""), 3)
	for range 100 { // in a second a busy machine does not come to the end
		if len(closed(""))+len(closed("ann")) == 4 {
			break
		}
	}
	require.Len(t, closed(""), 2)
	require.Len(t, closed("ann"), 2)
}
