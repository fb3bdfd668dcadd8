package serve

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/workspace"
)

// A user who sends large messages leaves room for others, and the largest message fits in any case.
func TestRoomForMessages(t *testing.T) {
	const unit = 4 << 20
	for _, test := range []struct{ memory, maxLine, perUser, total int }{
		{memory: 16 * unit, maxLine: unit, perUser: 4 * unit, total: 16 * unit},
		{memory: 16 * unit, maxLine: 4 * unit, perUser: 8 * unit, total: 16 * unit},
		{memory: unit, maxLine: unit, perUser: 2 * unit, total: 2 * unit},
	} {
		b := messageBudget(test.memory, test.maxLine)
		require.True(t, b.Of("ana").Reserve(test.perUser))
		require.False(t, b.Of("ana").Reserve(unit))
		for n := test.total - test.perUser; n > 0; n -= unit {
			require.True(t, b.Of(fmt.Sprint("user", n)).Reserve(unit), test)
		}
		require.False(t, b.Of("bob").Reserve(unit), test)
	}
}

// What one user is served with is not changed by the next one.
func TestRootsOfUsersAreApart(t *testing.T) {
	anas, bobs := t.TempDir(), t.TempDir()
	h := start(t)
	h.add("ana", anas)
	h.add("bob", bobs)
	h.add("eve")
	ana, err := h.user("ana")
	require.NoError(t, err)
	bob, err := h.user("bob")
	require.NoError(t, err)
	eve, err := h.user("eve")
	require.NoError(t, err)
	for dir, user := range map[string]User{anas: ana, bobs: bob} {
		require.Len(t, user.Workspace.Policy.Allow, 1)
		parsed, err := workspace.ParseDir(dir)
		require.NoError(t, err)
		require.Equal(t, parsed, user.Workspace.Policy.Allow[0])
	}
	require.Empty(t, eve.Workspace.Policy.Allow)
	require.Equal(t, []string{"1 ana", "2 bob", "3 eve"}, []string{ana.Connection, bob.Connection, eve.Connection})
	_, err = h.user("nobody")
	require.Error(t, err)
}
