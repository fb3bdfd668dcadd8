package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/storetest"
	"github.com/acp-agent/acp-agent/sessionstore"
)

func TestSearchLongPhrase(t *testing.T) {
	s := open(t, server.Address(t))
	storetest.Create(t, s, "one")
	found, err := s.Search(t.Context(), sessionstore.SearchQuery{Text: `"` + strings.Repeat("a ", 50_000) + `"`})
	require.NoError(t, err)
	require.Empty(t, found)
}

// A search uses the index of words, which row-level security must not prevent. It sees what it
// looks for, and nobody else's.
//
// Clause N1.
func TestSearchUsesIndex(t *testing.T) {
	address := server.Address(t)
	s := open(t, address)
	for _, owner := range []string{"", "ann"} {
		lease := storetest.Create(t, s.For(owner), "one")
		prompt, err := sessionstore.ParseUpdate([]byte(
			`{"update":{"sessionUpdate":"user_message_chunk","content":{"text":"shared words"}}}`))
		require.NoError(t, err)
		number, err := s.For(owner).BeginTurn(t.Context(), lease, sessionstore.Turn{Prompt: []sessionstore.Update{prompt}})
		require.NoError(t, err)
		require.NoError(t, s.For(owner).EndTurn(t.Context(), lease, number))
	}
	conn := connect(t, address)
	set := func(name, value string) {
		execute(t, conn, "SELECT set_config($1, $2, false)", name, value)
	}
	var lexeme string
	set("acp_agent.owner", "owner ann")
	visible := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*), coalesce(min(words::text), '') FROM words").Scan(&n, &lexeme))
		return n
	}
	require.Zero(t, visible())
	set("acp_agent.search", "!x") // matches all words
	require.Equal(t, 1, visible())
	set("acp_agent.search", strings.Fields(lexeme)[0][:10]+"':*")
	require.Equal(t, 1, visible())
	set("acp_agent.owner", "owner bob")
	require.Zero(t, visible())
	set("enable_seqscan", "off")
	rows, err := conn.Query(t.Context(), "EXPLAIN SELECT passage FROM words WHERE owner = 'ann' AND words @@ 'x'")
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "Bitmap Index Scan on by_word")
}
