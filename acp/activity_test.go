package acp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
)

func TestA29_WhatIsNoActivityLeavesTheTime(t *testing.T) {
	c := connect(t, acp.Options{})
	c.initialize()
	a, b := folder(t), folder(t)
	id := c.open(a)
	c.texts(id, "say one")
	at := c.find(id).UpdatedAt
	parsed, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	require.Equal(t, time.UTC, parsed.Location())
	for _, step := range []struct{ method, params string }{
		{"session/load", rootsParams(id, a, b)}, {"session/resume", rootsParams(id, a)}, {"session/list", `{}`},
		{"session/set_mode", idParams(id)}, {"session/fork", rootsParams(id, a)}, {"session/close", idParams(id)}, {"session/close", idParams(id)},
		{"session/resume", rootsParams(id, a)},
	} {
		later(t, at)
		c.call(step.method, step.params)
		require.Equal(t, at, c.find(id).UpdatedAt, step.method)
	}
}
