package proctest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/internal/test/proctest"
)

func TestMark(t *testing.T) {
	m, h := proctest.NewMark(t), proctest.Watch(t)
	require.Empty(t, m.Processes())
	cmd, _ := start(t, "hold", h.Env(), m.Env())
	held := h.Next()
	require.Equal(t, []int{cmd.Process.Pid}, m.Processes())
	require.Empty(t, (m + "0").Processes())
	require.NoError(t, cmd.Process.Kill())
	held.Ended()
	require.Error(t, cmd.Wait())
	require.Empty(t, m.Processes())
}
