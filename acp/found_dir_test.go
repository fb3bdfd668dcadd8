package acp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/testutil/proctest"
)

func TestM4_AGivenServerRunsInCwdAndAFoundOneInItsRoot(t *testing.T) {
	h := proctest.Watch(t)
	c := served(t, acp.Options{})
	a, b := folder(t), folder(t)
	declare(t, b, "found", "files", nil, nil)
	id := c.serve([]string{a, b}, server("given", "files", h.Env()))
	c.permit("allow-once")
	require.Equal(t, "started: <nil>", c.start(id, "found"))
	require.Contains(t, c.use(id, "given.where"), "in "+a)
	require.Contains(t, c.use(id, "found.where"), "in "+b)
}
