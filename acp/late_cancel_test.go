package acp_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/internal/jsonrpc"
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

// The response waits behind one that the client does not read.
func TestW5_ACancelWhileTheResponseWaitsIsNotLost(t *testing.T) {
	const limit = 4 << 10
	writing, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	r, store := &scripted{}, &closing{Memory: sessionstore.NewMemory(), step: func() { ended <- struct{}{} }}
	c := connect(t, acp.Options{Store: store, Backend: r.serve}.With(acp.Tuning{Wire: jsonrpc.Options{MaxQueue: limit, Tap: func(d jsonrpc.Direction, line []byte) {
		if d == jsonrpc.Sent && len(line) > limit {
			writing <- struct{}{}
			<-goOn
		}
	}}}))
	c.initialize()
	id := c.open(folder(t))
	c.texts(id, "say one")
	<-ended
	_, line := c.request("_echo", `["`+strings.Repeat("x", limit)+`"]`)
	c.send(line)
	<-writing // the queue is full
	prompt, line := c.request("session/prompt", promptParams(id, "nothing"))
	c.send(line)
	<-ended
	c.send(notification("session/cancel", idParams(id)), notification("_note", `{}`))
	require.Eventually(t, func() bool { return slices.Contains(r.noted(), "notify _note {}") }, patience, time.Millisecond)
	close(goOn)
	require.Equal(t, "cancelled", c.response(prompt).stopReason(t))
	require.Equal(t, []string{"two"}, c.texts(id, "say two"))
	require.NotContains(t, strings.Join(r.noted(), "\n"), "cancel {", "the runtime was done with the turn")
}
