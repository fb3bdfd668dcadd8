package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

// A prompt is one too many also behind one that has not begun, and is told so while that waits.
func TestW7_APromptBehindOneThatWaitsIsRefusedAtOnce(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	load, loading := c.request("session/load", rootsParams(id, a))
	first, line := c.request("session/prompt", promptParams(id, "say first"))
	second, secondLine := c.request("session/prompt", promptParams(id, "say second"))
	c.send(loading, line, secondLine)
	m := c.response(second)
	require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code)
	require.Equal(t, "turn_in_progress", m.reason(t))
	for _, m := range c.messages() {
		require.False(t, isResponse(load)(m) || isResponse(first)(m))
	}
	close(r.hold)
	require.Nil(t, c.response(load).Error)
	require.Equal(t, "end_turn", c.response(first).stopReason(t))
	require.Equal(t, []string{"first"}, texts(c.messages(), id))
}

// However long a cancelled turn takes to end, the next one begins behind its response.
func TestW7_APromptBehindACancelWaitsForTheResponseOfItsTurn(t *testing.T) {
	r := &scripted{release: make(chan struct{})}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }}.With(acp.Tuning{CancelGrace: patience}))
	c.initialize()
	id := c.open(folder(t))
	first, line := c.request("session/prompt", promptParams(id, "stubborn"))
	c.send(line)
	c.await(0, said("stubborn"))
	next, line := c.request("session/prompt", promptParams(id, "say next"))
	c.send(notification("session/cancel", idParams(id)), line)
	for range 100 { // it is behind the cancel, and could have begun
		c.list(`{}`)
	}
	require.NotContains(t, r.noted(), "prompt say next")
	close(r.release)
	require.Equal(t, "cancelled", c.response(first).stopReason(t))
	require.Equal(t, "end_turn", c.response(next).stopReason(t))
	_, answered := c.await(0, isResponse(first))
	_, begun := c.await(0, said("next"))
	require.Less(t, answered, begun)
}
