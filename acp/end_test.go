package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
)

func TestA28_CloseKeepsTheSessionAndDeleteRemovesIt(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	c.await(0, said("waiting"))
	require.Equal(t, "{}", string(c.call("session/close", idParams(id))))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	_, promptAt := c.await(0, isResponse(prompt))
	require.Greater(t, len(c.messages()), promptAt+1)
	require.Contains(t, r.noted(), "close")
	require.Equal(t, id, c.find(id).SessionID)

	for _, method := range []string{"session/prompt", "session/set_mode", "session/set_config_option"} {
		m := c.try(method, promptParams(id, "x"))
		require.Equal(t, -32002, m.Error.Code, method)
		require.Equal(t, "not_active", m.reason(t), method)
	}
	require.Equal(t, "{}", string(c.call("session/close", idParams(id))), "inactive")
	require.Equal(t, "{}", string(c.call("session/close", idParams("sess_unknown"))), "unknown")
	require.Equal(t, "{}", string(c.call("session/delete", idParams("sess_unknown"))), "unknown")

	c.call("session/resume", rootsParams(id, a))
	prompt, line = c.request("session/prompt", promptParams(id, "wait"))
	c.send(line)
	require.Equal(t, "{}", string(c.call("session/delete", idParams(id))))
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Empty(t, c.list(`{}`))
	for _, m := range []message{
		c.try("session/load", rootsParams(id, a)), c.try("session/resume", rootsParams(id, a)),
		c.try("session/fork", rootsParams(id, a)), c.try("session/prompt", promptParams(id, "x")),
	} {
		require.Equal(t, -32002, m.Error.Code)
		require.Equal(t, "not_found", m.reason(t))
	}
}
