package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
)

// The error of a fork without a working directory says what to send, and nothing is created.
//
// Clause A14.
func TestForkWithoutCwd(t *testing.T) {
	c := start(t, acp.Options{})
	source := c.open(folder(t))
	for name, params := range map[string]string{
		"absent": `{"sessionId":"` + source + `"}`, "null": `{"sessionId":"` + source + `","cwd":null}`,
		"empty": `{"sessionId":"` + source + `","cwd":""}`,
	} {
		m := c.try("session/fork", params)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code, name)
		require.Contains(t, m.Error.Message, "cwd", name)
		require.Contains(t, m.Error.Message, "absolute path", name)
	}
	require.Len(t, c.list(`{}`), 1)
}

// A copy that would have more than its request says is refused, and nothing is created.
//
// Clause A40.
func TestForkRefusesPositions(t *testing.T) {
	c := start(t, acp.Options{})
	cwd := folder(t)
	source := c.open(cwd)
	c.texts(source, "say one")
	for _, position := range []string{`"c1"`, `""`, `7`, `{}`} {
		m := c.try("session/fork", altered(rootsParams(source, cwd), "cursorId", position))
		require.NotNil(t, m.Error, position)
		require.Equal(t, jsonrpc.CodeInvalidParams, m.Error.Code)
		require.Contains(t, m.Error.Message, "cursorId")
		require.Contains(t, m.Error.Message, "all finished turns")
	}
	require.Len(t, c.list(`{}`), 1)
	c.call("session/fork", altered(rootsParams(source, cwd), "cursorId", "null"))
}
