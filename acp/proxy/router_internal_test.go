package proxy

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/backend"
)

// A request about a session that must be opened again is answered, also while another is created.
func TestRequestsForADetachedSession(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	c := &child{childProcess: childProcess{log: log, router: &router{log: log,
		limits: limits{MaxHeld: 1, MaxHeldBytes: 100}, routes: make(map[string]recipient)}}}
	before, after := &childUse{child: c, bridge: &bridge{}}, &childUse{child: c, bridge: &bridge{}}
	cs, attached := newChildSession(before, backend.Raw(`"a"`), live)
	require.True(t, attached)
	c.limits.MaxSubagents = 1
	_, err := cs.announced(nil, "sub")
	require.NoError(t, err)
	cs.join(after, live)
	_, left := cs.remove(after.bridge, true)
	require.Equal(t, 1, left)
	require.False(t, cs.isAttached())

	answers := make(chan backend.Work, 2)
	for _, id := range []string{"a", "sub"} {
		c.router.route(message{ctx: t.Context(), id: id, method: "_x", answer: answers})
		require.Len(t, answers, 1)
		_, err := (<-answers)()
		require.ErrorContains(t, err, errUnknownSession.Error())
	}
	c.router.begin()
	c.router.route(message{ctx: t.Context(), id: "sub", method: "_x", answer: answers})
	require.Empty(t, answers)
	_, attached = newChildSession(before, backend.Raw(`"a"`), live)
	require.True(t, attached, "it can be opened again")
	c.router.end()
	require.Len(t, answers, 1)
	_, err = (<-answers)()
	require.ErrorContains(t, err, errUnknownSession.Error())
}
