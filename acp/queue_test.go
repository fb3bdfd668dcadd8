package acp_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

// A cancel does not stand in the line of its session: it reaches the prompts that stand there.
//
// Clause A32.
func TestCancelDoesNotQueue(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	load, loading := c.request("session/load", rootsParams(id, a))
	prompt, line := c.request("session/prompt", promptParams(id, "say waited"))
	c.send(loading, line, notification("session/cancel", idParams(id)))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t), "while the load is at work")
	next := c.post("session/prompt", promptParams(id, "say next"))
	for _, m := range c.messages() {
		require.False(t, isResponse(load)(m))
	}
	close(r.hold)
	require.Nil(t, c.response(load).Error, "which it leaves alone")
	require.Equal(t, "end_turn", c.response(next).stopReason(t))
	require.Equal(t, []string{"next"}, texts(c.messages(), id))
}

// A prompt behind a load that fails, and so ends no turn, is rejected like one that arrives later.
//
// Clause A32.
func TestPromptBehindAFailedLoad(t *testing.T) {
	r := &scripted{hold: make(chan struct{})}
	c := start(t, acp.Options{Backend: using(r)})
	a := folder(t)
	id := c.open(a)
	running := c.post("session/prompt", promptParams(id, "wait"))
	queued, rejected := c.busy(id)
	require.NotNil(t, rejected.Error)

	load, line := c.request("session/load", rootsParams(id, a))
	behind, prompt := c.request("session/prompt", promptParams(id, "say behind"))
	c.send(line, prompt)
	c.list(`{}`) // the prompt has been read
	r.refuse = errors.New("not today")
	close(r.hold)
	require.NotNil(t, c.response(load).Error)
	require.Equal(t, rejected.Error.Code, c.response(behind).Error.Code)
	c.send(notification("session/cancel", idParams(id)))
	for _, prompt := range []string{running, queued} {
		require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	}
}
