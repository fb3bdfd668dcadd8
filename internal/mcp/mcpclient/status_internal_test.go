package mcpclient

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	acpmcp "github.com/acp-agent/acp-agent/acp/mcp"
)

// While a server is started again, its status says why it failed before.
func TestStatusAfterFailure(t *testing.T) {
	s := &server{changed: make(chan struct{})}
	for _, state := range []acpmcp.State{acpmcp.Waiting, acpmcp.Failed} {
		s.setState(state, errors.New("it exited"))
		s.setStarting("it has not answered yet")
		s.setStarting("it is given time")
		const expected = "it is given time; the last attempt failed: "
		require.Equal(t, expected+"`it exited`", s.status().Waiting)
		require.NoError(t, s.status().Err)
		require.EqualError(t, s.explain(errors.New("too late")), "too late: "+expected+"it exited")

		s.failure = nil // as a connection makes it
		s.setStarting("it is being restarted")
		require.Equal(t, "it is being restarted", s.status().Waiting)
		require.EqualError(t, s.explain(errors.New("too late")), "too late: it is being restarted")
	}
}
