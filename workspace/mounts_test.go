package workspace_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// Clause C7.
func TestPolicyText(t *testing.T) {
	for text, policy := range map[string]workspace.Mounts{
		"existing": workspace.ExistingMounts, "none": workspace.NoMounts, "any": workspace.AnyMounts,
	} {
		encoded, err := json.Marshal(policy)
		require.NoError(t, err)
		require.Equal(t, `"`+text+`"`, string(encoded))
		var back workspace.Mounts
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Equal(t, policy, back)
	}
	var m workspace.Mounts
	require.EqualError(t, m.UnmarshalText([]byte("some")),
		`invalid mount policy "some": use none, existing or any`)
	require.Zero(t, workspace.Options{}.Mounts, "the default is existing")
}
