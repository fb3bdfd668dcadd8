package proxy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
)

// The adapter may answer a cancelled turn before this package gives the child up: the next turn
// gets what the child says from then on.
//
// Clause W6.
func TestUpdatesAfterCancelledTurn(t *testing.T) {
	cs := &childSession{}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := &prompt{ctx: ctx}, &prompt{ctx: t.Context()}
	cs.addPromptLocked(first)
	cancel()
	require.Same(t, first, cs.runningPromptLocked(), "the child has not answered it")
	cs.addPromptLocked(second)
	require.Same(t, second, cs.runningPromptLocked())
}

// A session that must be opened again gets no messages until then, and its subagents neither.
func TestDetachedSession(t *testing.T) {
	c, err := newScripted(t, profiles.Profile{}).program.Main(t.Context())
	require.NoError(t, err)
	before, after := &childUse{child: c, bridge: &bridge{}}, &childUse{child: c, bridge: &bridge{}}
	cs, attached := newChildSession(before, backend.Raw(`"a"`), live)
	require.True(t, attached)
	_, err = cs.announced(cs.root, "sub", 1)
	require.NoError(t, err)
	cs.join(after, live)
	require.False(t, cs.leave(after), "a user is left")
	require.False(t, cs.isAttached())
	require.Nil(t, c.Router.Find("sub"))
	_, attached = newChildSession(before, backend.Raw(`"a"`), live)
	require.True(t, attached, "it can be opened again")
}
