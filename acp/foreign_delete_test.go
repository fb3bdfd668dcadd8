package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// A session that another agent answers is not deleted here either, and neither closed nor prompted.
func TestA31_AnotherAgentsSessionIsLeftAlone(t *testing.T) {
	store := sessionstore.NewMemory()
	one := connect(t, acp.Options{Store: store})
	two := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return &scripted{kind: "other"} }})
	one.initialize()
	two.initialize()
	id := one.open(folder(t))
	one.texts(id, "say one")
	m := two.try("session/delete", idParams(id))
	require.Equal(t, []string{"sessionId other_agent"}, m.findings(t))
	require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
	require.Equal(t, "{}", string(two.call("session/close", idParams(id))))
	require.Equal(t, -32002, two.try("session/prompt", promptParams(id, "x")).Error.Code)
	require.Equal(t, []string{"two"}, one.texts(id, "say two"))
	require.Equal(t, id, one.find(id).SessionID)
}
