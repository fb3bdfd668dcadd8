package acp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/test/mapstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Everything that needs no optional part of a store works with one that has none, also with a
// backend that has sessions of its own. Clients are not offered the rest, and asking for it is
// an error.
func TestStoreWithoutOptionalParts(t *testing.T) {
	a, b := folder(t), folder(t)
	cwd, err := workspace.ParseDir(a)
	require.NoError(t, err)
	k := &knowing{own: []backend.ForeignSession{{State: []byte("of theirs"), Cwd: cwd, Title: "theirs", Updated: time.Now()}}}
	store := &mapstore.Store{}
	options := acp.Options{Store: store, Backend: func() backend.Backend { return k }}
	c := connect(t, options)

	var offered struct {
		AgentCapabilities struct {
			LoadSession         bool
			SessionCapabilities map[string]json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(c.initialize(), &offered))
	require.True(t, offered.AgentCapabilities.LoadSession)
	capabilities := offered.AgentCapabilities.SessionCapabilities
	require.NotContains(t, capabilities, "archive")
	for _, name := range []string{"list", "fork", "resume", "close", "delete"} {
		require.Contains(t, capabilities, name)
	}

	one := c.open(a, b)
	require.NotEmpty(t, c.texts(one, "say one"))
	c.call("session/set_title", encode(map[string]any{"sessionId": one, "title": "chosen"}))
	require.Len(t, c.list(`{}`), 1, "the backend's own sessions are not listed")
	require.Equal(t, "not_found", c.try("session/load", rootsParams("theirs", a)).reason(t))
	var forked struct{ SessionID string }
	require.NoError(t, json.Unmarshal(c.call("session/fork", rootsParams(one, a, b)), &forked))
	require.NotEmpty(t, c.texts(forked.SessionID, "say two"))

	for _, method := range []string{"session/archive", "session/unarchive"} {
		refused := c.try(method, idParams(one))
		require.Equal(t, jsonrpc.CodeMethodNotFound, refused.Error.Code)
		require.Equal(t, "this session store cannot do that: it is no sessionstore.Archiver", refused.Error.Message)
	}
	require.NotEmpty(t, c.texts(one, "say three"), "it is still active")
	var none struct{ Sessions []any }
	require.NoError(t, json.Unmarshal(c.call("session/list", `{"archived":"only"}`), &none))
	require.Empty(t, none.Sessions)
	c.call("session/close", idParams(one))

	again := connect(t, options)
	again.initialize()
	require.Len(t, again.list(`{}`), 2)
	require.Equal(t, "chosen", again.find(one).Title)
	before := len(again.messages())
	again.call("session/load", rootsParams(one, a, b))
	require.Greater(t, len(again.messages()), before+2, "the conversation is shown")
	require.NotEmpty(t, again.texts(one, "say four"))
	again.call("session/delete", idParams(one))
	require.Len(t, again.list(`{}`), 1)
}
