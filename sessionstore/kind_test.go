package sessionstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Clause A37.
func TestKinds(t *testing.T) {
	var states []sessionstore.Kind
	for _, k := range protocol.UpdateKinds() {
		kind := sessionstore.Kind(k.Name)
		if kind.IsState() {
			states = append(states, kind)
		}
		needs, known := kind.Needs()
		require.True(t, known)
		require.Equal(t, k.Needs, needs)
	}
	require.Equal(t, sessionstore.StateKinds(), states)
	for kind, want := range map[sessionstore.Kind]bool{"_own": true, "later": false, "": false} {
		needs, known := kind.Needs()
		require.Equal(t, want, known)
		require.Empty(t, needs)
		require.False(t, kind.IsState())
	}
}
