package acp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// What a response says of a session is its id, where that is new, and what the runtime adds.
func TestA21_ResponsesHaveTheMembersOfTheRuntimeAndTheId(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a, b)
	for method, want := range map[string][]string{
		"session/new": {"_meta", "sessionId"}, "session/fork": {"_meta", "sessionId"}, "session/load": {"_meta"}, "session/resume": {"_meta"},
	} {
		var result map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(c.call(method, rootsParams(id, a, b)), &result))
		require.Equal(t, want, slices.Sorted(maps.Keys(result)), method)
	}
}
