package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore/sqlite"
)

// White space between tokens may hold line breaks, on which neither the wire nor the store comes apart.
func TestA27_WhatIsSpreadOverLinesIsReplayedWhole(t *testing.T) {
	store := sqlite.New(sqlite.Options{Dir: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r := &speaking{updates: []string{
		"{\n\t\"sessionUpdate\": \"agent_message_chunk\",\r\n\t\"content\": {\"type\":\"text\", \"text\":\"a\\nb\"}\r}",
		"{\"sessionUpdate\":\"_kind\",\n\"x\":[1,\n2]}",
	}}
	c := connect(t, acp.Options{Store: store, Backend: func() backend.Backend { return r }})
	c.initialize()
	a := folder(t)
	id := c.open(a)
	prompt, line := c.request("session/prompt", "{\"sessionId\":\""+id+"\",\r\"prompt\":[{\"type\":\"text\",\r\"text\":\"go\"}]}")
	c.send(line)
	require.Equal(t, "end_turn", c.response(prompt).stopReason(t))
	before := len(c.messages())
	c.call("session/load", rootsParams(id, a))
	got := shown(t, c.messages()[before:], id)
	require.Len(t, got, 3)
	require.JSONEq(t, `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"go"}}`, got[0])
	for i, update := range r.updates {
		require.JSONEq(t, update, got[1+i])
	}
}
