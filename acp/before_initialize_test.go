package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
)

func TestW10_NoMethodIsServedBeforeInitialize(t *testing.T) {
	r := &scripted{}
	c := connect(t, acp.Options{Backend: func() backend.Backend { return r }})
	a := folder(t)
	for _, method := range append(opening, "session/list", "session/prompt", "session/close", "session/delete",
		"session/set_mode", "session/set_config_option", "authenticate", "logout", "_other") {
		m := c.try(method, altered(rootsParams("s", a), "prompt", `[]`))
		require.NotNil(t, m.Error, method)
		require.Equal(t, jsonrpc.CodeInvalidRequest, m.Error.Code, method)
		require.Equal(t, "not_initialized", m.reason(t), method)
		require.Contains(t, m.Error.Message, method)
	}
	c.send(notification("session/cancel", idParams("s")), notification("_note", `{}`))
	c.initialize()
	require.Empty(t, c.list(`{}`))
	require.Empty(t, r.noted())
}

func TestW10_AnyNumberIsAnsweredWithTheVersionThatIsSpoken(t *testing.T) {
	for _, version := range []string{"-1", "0", "1", "1.0", "1.5", "2", "20260701", "1e300", "18446744073709551616"} {
		c := connect(t, acp.Options{})
		var result struct{ ProtocolVersion json.RawMessage }
		require.NoError(t, json.Unmarshal(c.call("initialize", `{"protocolVersion":`+version+`}`), &result))
		require.Equal(t, "1", string(result.ProtocolVersion), version)
	}
}
