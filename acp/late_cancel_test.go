package acp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// closing is a store in which a test steps in while the end of a turn is stored.
type closing struct {
	*sessionstore.Memory
	step func()
}

func (s *closing) EndTurn(ctx context.Context, l sessionstore.Lease, r sessionstore.StopReason) error {
	s.step()
	return s.Memory.EndTurn(ctx, l, r)
}

// The runtime has ended its turn, and the response is not written yet.
func TestW5_ACancelWhileTheEndOfATurnIsStoredIsNotLost(t *testing.T) {
	store := &closing{Memory: sessionstore.NewMemory(), step: func() {}}
	c := connect(t, acp.Options{Store: store})
	c.initialize()
	id := c.open(folder(t))
	c.texts(id, "say one")
	store.step = func() {
		c.send(notification("session/cancel", idParams(id)))
		c.call("_echo", `{}`) // the cancel was read
	}
	prompt, line := c.request("session/prompt", promptParams(id, "say two"))
	c.send(line)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Contains(t, texts(c.messages(), id), "two")
	store.step = func() {}
	require.Equal(t, []string{"three"}, c.texts(id, "say three"))
}
