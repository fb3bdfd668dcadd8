package proxy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp/client"
	"github.com/acp-agent/acp-agent/acp/proxy"
)

// A client that names no roots means none. An agent may take a request that does not name them for leave to bring back
// those that it has stored, so it is told.
func TestP3_AClientThatNamesNoRootsHasTheChildToldOfNone(t *testing.T) {
	h := newHouse(t, abilities{Load: true, Resume: true, Fork: true, Roots: true}, proxy.Options{})
	all := roots(t, 2)
	v := h.enter()
	s, err := v.NewSession(t.Context(), client.Setup{Roots: all})
	require.NoError(t, err)
	params, err := json.Marshal(map[string]any{"sessionId": s.ID, "cwd": all.Cwd().String(), "mcpServers": []any{}})
	require.NoError(t, err)
	for _, method := range []string{"session/load", "session/resume", "session/fork"} {
		_, err := v.Conn().Call(t.Context(), method, params)()
		require.NoError(t, err)
		list := h.directories(method)
		require.NotNil(t, list, method)
		require.Empty(t, list, method)
	}
}
