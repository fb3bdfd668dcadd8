package sessionstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause A36.
func TestSubagentEvents(t *testing.T) {
	u, err := sessionstore.ParseUpdate([]byte(
		` {"update":{"sessionUpdate":"agent_message_chunk"},"_meta":{"n":1.0}}`))
	require.NoError(t, err)
	subagent := sessionstore.OfSubagent("sub_a1", u)
	require.Equal(t, `{"sessionId":"sub_a1","update":{"sessionUpdate":"agent_message_chunk"},`+
		`"_meta":{"n":1.0}}`, subagent.String())
	require.Equal(t, subagent, sessionstore.StoredUpdate(subagent.Raw))
	parsed, err := sessionstore.ParseUpdate(subagent.Raw)
	require.NoError(t, err)
	require.Equal(t, subagent, parsed)

	key, of, ok := subagent.Subagent()
	require.True(t, ok)
	require.Equal(t, "sub_a1", key)
	require.Equal(t, sessionstore.AgentMessageChunk, of.Kind)
	require.Equal(t, `{"update":{"sessionUpdate":"agent_message_chunk"},"_meta":{"n":1.0}}`,
		of.String())
}

func TestUpdatesOfNoSubagent(t *testing.T) {
	for _, raw := range []string{
		`{"update":{"sessionUpdate":"plan","sessionId":"sub_a"}}`,
		`{"sessionId":"other","update":{"sessionUpdate":"plan"}}`,
		`{"sessionId":"sub_A","update":{"sessionUpdate":"plan"}}`,
		`{"sessionId":"sub_","update":{"sessionUpdate":"plan"}}`,
	} {
		u := sessionstore.StoredUpdate([]byte(raw))
		require.Equal(t, sessionstore.Kind("plan"), u.Kind, raw)
		_, of, ok := u.Subagent()
		require.False(t, ok, raw)
		require.Equal(t, u, of)
	}
	_, err := sessionstore.ParseUpdate([]byte(`{"sessionId":"sub_a","update":{}`))
	require.Error(t, err)
}
