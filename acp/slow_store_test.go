package acp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/acp-agent/acp-agent/acp"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// hanging is a store that, from when a test says so, takes no updates until it says so again.
type hanging struct {
	*sessionstore.Memory
	hangs     atomic.Bool
	appending chan struct{} // one for each append that has begun
	goOn      chan struct{}
}

func (h *hanging) Append(ctx context.Context, l sessionstore.Lease, segment []sessionstore.Update) error {
	if h.hangs.Load() {
		select {
		case h.appending <- struct{}{}:
		default:
		}
		<-h.goOn
	}
	return h.Memory.Append(ctx, l, segment)
}

// What the runtime says is with the client before it is stored, and the response behind what was stored.
func TestW11_UpdatesReachTheClientWhileTheStoreHangs(t *testing.T) {
	store := &hanging{Memory: sessionstore.NewMemory(), appending: make(chan struct{}, 1), goOn: make(chan struct{})}
	c := connect(t, acp.Options{Store: store}.With(acp.Tuning{Recorder: sessionstore.RecorderOptions{SegmentBytes: 1, QueueBytes: 1 << 20}}))
	c.initialize()
	a := folder(t)
	id := c.open(a)
	c.texts(id, "say one") // and all before it is stored
	store.hangs.Store(true)
	prompt, line := c.request("session/prompt", promptParams(id, "count 1000"))
	c.send(line)
	<-store.appending
	for i := range 1000 {
		c.await(0, said(fmt.Sprint(i)))
	}
	require.Len(t, c.list(`{}`), 1, "nor is anybody else held up")
	for _, m := range c.messages() {
		require.False(t, isResponse(prompt)(m))
	}
	close(store.goOn)
	require.Equal(t, "end_turn", c.response(prompt).stopReason(t))
	require.Len(t, texts(c.messages(), id), 1001)
}
