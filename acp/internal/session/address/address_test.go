package address_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause A36.
func TestSubagents(t *testing.T) {
	session := address.New("s.1")
	subagent := session.Subagent("sub_a")
	of, key, isSubagent := address.Split(subagent.ID)
	require.Equal(t, []any{session.ID, "sub_a", true}, []any{of, key, isSubagent})
	_, _, isSubagent = address.Split(session.ID)
	require.False(t, isSubagent)
	require.True(t, address.NamesSubagent(subagent.On(backend.Raw(`{"path":"a"}`))))
	require.False(t, address.NamesSubagent(session.On(subagent.On(nil))), "the last id counts")
	require.Equal(t, "other", session.External("other"))
	require.Equal(t, string(session.ID), session.External(sessionstore.ParentKey))

	u, err := backend.ParseUpdate([]byte(
		`{"update":{"sessionUpdate":"subagent_update","sessionId":"sub_b"}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"sessionId":"s.1.sub_a","update":{"sessionUpdate":"subagent_update",`+
		`"sessionId":"s.1.sub_b"}}`, string(session.Update(sessionstore.OfSubagent("sub_a", u))))
}
